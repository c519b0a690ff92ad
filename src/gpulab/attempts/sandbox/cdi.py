"""The GPU's device nodes and driver files, as the machine's CDI specification lists them.

https://github.com/cncf-tags/container-device-interface; `nvidia-ctk cdi generate` writes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from gpulab.model import LabError

FOLDERS = (Path("/etc/cdi"), Path("/var/run/cdi"))


@dataclass(frozen=True)
class Gpu:
    """What a sandbox needs to use a GPU.

    Attributes:
        nodes: device nodes: here, and inside.
        files: driver files: here, and where they belong.
        links: symbolic links among the driver files: target and place.
        libraries: folders that the dynamic linker must search.
        environment: variables.
    """

    nodes: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, str], ...]
    links: tuple[tuple[str, str], ...]
    libraries: tuple[str, ...]
    environment: dict[str, str]


def find(name: str, folders: Iterable[Path] = FOLDERS) -> Gpu:
    """The device `name`, such as nvidia.com/gpu=0.

    Raises:
        LabError: no specification has it, or one cannot be read.
    """
    kind, _, wanted = name.partition("=")
    known: list[str] = []
    for path in sorted(file for folder in folders for file in _specifications(folder)):
        specification = _read(path)
        if specification.get("kind") != kind:
            continue
        for device in specification.get("devices", []):
            known.append(f"{kind}={device.get('name')}")
            if str(device.get("name")) == wanted:
                return _collect([specification, device], path)
    found = ", ".join(known) or "no device"
    raise LabError(
        f"No CDI specification lists {name}; it lists {found}. Write it again with "
        "`nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`, or correct `gpu`.",
        code=4,
    )


def _specifications(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*") if path.suffix in {".yaml", ".json"}]


def _read(path: Path) -> dict[str, Any]:
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise LabError(f"The CDI specification {path} cannot be read ({error}).", code=4) from None
    return found if isinstance(found, dict) else {}


def _collect(parts: list[dict[str, Any]], path: Path) -> Gpu:
    edits = [part.get("containerEdits") or {} for part in parts]
    try:
        hooks = [hook for edit in edits for hook in edit.get("hooks") or []]
        return Gpu(
            nodes=_unique(
                (node.get("hostPath", node["path"]), node["path"])
                for edit in edits
                for node in edit.get("deviceNodes") or []
            ),
            # Files only: sockets of host services stay outside.
            files=_unique(
                (mount["hostPath"], mount["containerPath"])
                for edit in edits
                for mount in edit.get("mounts") or []
                if not Path(mount["hostPath"]).is_socket()
            ),
            links=_unique(
                (target, place)
                for argument in _hook_values(hooks, "create-symlinks", "--link")
                for target, _, place in [argument.partition("::")]
            ),
            libraries=_unique(_hook_values(hooks, "update-ldcache", "--folder")),
            environment=dict(
                variable.split("=", 1) for edit in edits for variable in edit.get("env") or []
            ),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise LabError(f"The CDI specification {path} is malformed ({error!r}).", code=4) from None


def _unique(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))


def _hook_values(hooks: list[dict[str, Any]], name: str, option: str) -> list[str]:
    """What the option is given in the hooks of that name, which a runtime would run."""
    values = []
    for hook in hooks:
        words = [str(word) for word in hook.get("args") or []]
        if name in words:
            values += [value for word, value in pairwise(words) if word == option]
            values += [word.split("=", 1)[1] for word in words if word.startswith(f"{option}=")]
    return values
