"""The stacks of images/stacks.yml, and how a machine compares with one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpulab.model import Hardware, LabError


def load(root: Path) -> dict[str, dict[str, Any]]:
    """Every stack by name.

    Raises:
        LabError: the file is missing or no YAML.
    """
    import yaml  # noqa: PLC0415 - absent where only the hardware command runs

    path = root / "images" / "stacks.yml"
    try:
        stacks = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise LabError(f"{path} cannot be read ({error}); restore it.") from None
    if not isinstance(stacks, dict):
        raise LabError(f"{path} holds no stacks; restore it.")
    return stacks


def compare(root: Path, name: str, hardware: Hardware) -> str:
    """The stack's name where the machine has its pins, else `differs (...)`; never an error."""
    try:
        pins = load(root).get(name)
    except ImportError:
        return "unknown (PyYAML is not installed)"
    except LabError:
        pins = None
    if not isinstance(pins, dict):
        return f"unknown (no stack {name!r})"
    found = {
        "driver": hardware.driver,
        "cuda": hardware.cuda,
        "python": ".".join(hardware.python.split(".")[:2]),
        "torch": hardware.torch.partition("+")[0],
    }
    differing = [
        f"{key} {found[key] or 'none'}, not {pins.get(key) or 'none'}"
        for key in found
        if str(found[key] or "") != str(pins.get(key) or "")
    ]
    return f"differs ({'; '.join(differing)})" if differing else name
