"""Folders of work: the shipped files, and variants laid over them."""

from __future__ import annotations

import shutil
from pathlib import Path

from gpulab.catalogue.exercises import Exercise


def lay_out(exercise: Exercise, target: Path, variant: Path | None = None) -> Path:
    """Copy the shipped files to `target` (made here), then those of `variant` over them."""
    target.mkdir(parents=True)
    for name in exercise.shipped_files():
        _copy(exercise.folder / name, target / name)
    if variant is not None:
        for path in variant.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                _copy(path, target / path.relative_to(variant))
    return target


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
