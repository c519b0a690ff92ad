"""Import hooks: the runtime stub is loaded before torch, the bridge is installed right after it."""

from __future__ import annotations

import importlib.machinery
import sys
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    Action = Callable[[ModuleType], None]


class Finder:
    """Finds modules as usual, and acts before or after they are executed."""

    def __init__(self) -> None:
        self.before: dict[str, Callable[[], None]] = {}
        self.after: dict[str, Action] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module that is waited for; None leaves the others alone."""
        if name not in self.before and name not in self.after:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            self._surround(name, spec.loader)
        return spec

    def _surround(self, name: str, loader: object) -> None:
        execute = loader.exec_module  # type: ignore[attr-defined]

        def surrounded(module: ModuleType) -> None:
            before = self.before.pop(name, None)
            if before is not None:
                before()
            execute(module)
            after = self.after.pop(name, None)
            if after is not None:
                after(module)

        loader.exec_module = surrounded  # type: ignore[attr-defined]


_finder = Finder()


def after_import(name: str, action: Action) -> None:
    """Call `action` with the module `name` once it is imported, or now if it already is."""
    module = sys.modules.get(name)
    if module is None:
        _finder.after[name] = action
    else:
        action(module)


def install() -> None:
    """Wait for torch."""
    if "torch" in sys.modules:
        message = "rehearsal device: torch was imported too early; start Python anew"
        raise RuntimeError(message)
    _finder.before["torch"] = _load_stub
    _finder.after["torch"] = _install_bridge
    sys.meta_path.insert(0, _finder)  # type: ignore[arg-type] # a finder needs find_spec only


def _load_stub() -> None:
    from . import runtime  # noqa: PLC0415 - most processes never import torch

    runtime.load()


def _install_bridge(_torch: ModuleType) -> None:
    from . import bridge  # noqa: PLC0415 - imports torch

    bridge.install()
