"""The stacks of images/stacks.yml, and how a machine compares with one.

The dataclasses below are the file's schema: an unknown key, a missing one or a value of the wrong
shape is refused with a sentence that names it.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpulab import tables
from gpulab.model import Hardware, LabError

FILE = Path("images/stacks.yml")


@dataclass(frozen=True)
class PinnedImage:
    """An image by name and content."""

    name: str
    digest: str

    @property
    def reference(self) -> str:
        """What `FROM` takes."""
        return f"{self.name}@{self.digest}"


@dataclass(frozen=True)
class Driver:
    """The exact NVIDIA driver: its Ubuntu packages, or the checksum of its installer."""

    version: str
    package: str | None = None
    fabric_manager: str | None = None
    installer_sha256: str | None = None


@dataclass(frozen=True)
class LabPython:
    """The Python of the lab's own commands and of Jupyter, and the wheels it has besides."""

    python: str
    wheels: tuple[str, ...]


@dataclass(frozen=True)
class Shared:
    """What all stacks have in common; `epoch` in seconds since 1970."""

    epoch: int
    channel: str
    micromamba: PinnedImage
    container_toolkit: str
    lab: LabPython


@dataclass(frozen=True)
class Stack:
    """One set of pins; `gpus` are compute capabilities, `open` the pins still to be confirmed.

    `build` is the local part of torch's version: cu118, cu130, cpu.
    """

    purpose: str
    base: PinnedImage
    python: str
    torch: str
    build: str
    wheels: tuple[str, ...]
    gpus: tuple[str, ...] = ()
    driver: Driver | None = None
    cuda: str | None = None
    cudnn: str | None = None
    wheel_index: str | None = None
    open: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stacks:
    """The whole file."""

    shared: Shared
    stacks: dict[str, Stack]

    def find(self, name: str) -> Stack:
        """One stack.

        Raises:
            LabError: there is none of that name.
        """
        if name in self.stacks:
            return self.stacks[name]
        close = difflib.get_close_matches(name, list(self.stacks), n=1)
        advice = (
            f"did you mean {close[0]}?" if close else f"choose one of {', '.join(self.stacks)}."
        )
        raise LabError(f"There is no stack {name!r}; {advice}")


_MINOR, _EXACT = r"\d+\.\d+", r"\d+\.\d+\.\d+"
_SHAPES = {
    "python": (_MINOR, "3.12"),
    "cuda": (_MINOR, "13.0"),
    "torch": (_EXACT, "2.11.0"),
    "cudnn": (_EXACT, "9.19.0"),
    "version": (r"\d+\.\d+(\.\d+)?", "580.159.04"),
    "build": (r"cpu|cu\d+", "cu130"),
    "digest": (r"sha256:[0-9a-f]{64}", "sha256:... of 64 hexadecimal digits"),
    "installer_sha256": (r"[0-9a-f]{64}", "64 hexadecimal digits"),
    "name": (r"[a-z0-9./_-]+:[A-Za-z0-9._-]+", "ubuntu:24.04"),
    "gpus": (_MINOR, "9.0"),
    "package": (r"[a-z0-9.+-]+=\S+", "name=version"),
    "fabric_manager": (r"[a-z0-9.+-]+=\S+", "name=version"),
    "container_toolkit": (r"\d+\.\d+\.\d+-\d+", "1.19.1-1"),
}


def load(root: Path) -> Stacks:
    """Read images/stacks.yml below `root`.

    Raises:
        LabError: the file is missing, no YAML, or does not fit the schema.
    """
    import yaml  # noqa: PLC0415 - absent where only the hardware command runs

    path = root / FILE
    try:
        table = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        said = " ".join(str(error).split())
        raise LabError(f"{path} cannot be read ({said}); restore it.") from None
    stacks = tables.from_table(table, Stacks, f"{path}")
    _check_shapes(table, f"{path}")
    for name, stack in stacks.stacks.items():
        _check_sense(stack, f"{path}: {name}")
    return stacks


def _check_shapes(value: Any, where: str, key: str = "") -> None:
    if isinstance(value, dict):
        for name, item in value.items():
            _check_shapes(item, f"{where}: {name}", name)
    elif isinstance(value, list):
        for item in value:
            _check_shapes(item, where, key)
    elif key in _SHAPES and not re.fullmatch(_SHAPES[key][0], value):
        raise LabError(f"{where} is {value!r}; write it like {_SHAPES[key][1]}.")


def _check_sense(stack: Stack, where: str) -> None:
    with_gpu = [stack.driver, stack.cuda, stack.cudnn, stack.gpus or None]
    if stack.build == "cpu" and any(with_gpu):
        raise LabError(f"{where} is a CPU build; remove driver, cuda, cudnn and gpus.")
    if stack.build != "cpu" and not all(with_gpu):
        raise LabError(f"{where} is a CUDA build; it needs driver, cuda, cudnn and gpus.")
    if stack.cuda is not None and stack.build != f"cu{stack.cuda.replace('.', '')}":
        raise LabError(f"{where}: build {stack.build} does not belong to CUDA {stack.cuda}.")


def compare(root: Path, name: str, hardware: Hardware) -> str:
    """The stack's name where the machine has its pins, else `differs (...)`; never an error."""
    try:
        pins = load(root).find(name)
    except ImportError:
        return "unknown (PyYAML is not installed)"
    except LabError:
        return f"unknown (no stack {name!r})"
    found = {
        "driver": (hardware.driver, pins.driver and pins.driver.version),
        "cuda": (hardware.cuda, pins.cuda),
        "python": (".".join(hardware.python.split(".")[:2]), pins.python),
        "torch": (hardware.torch.partition("+")[0], pins.torch),
    }
    differing = [
        f"{key} {here or 'none'}, not {pinned or 'none'}"
        for key, (here, pinned) in found.items()
        if (here or None) != pinned
    ]
    return f"differs ({'; '.join(differing)})" if differing else name
