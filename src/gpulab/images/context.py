"""What a build is handed: the locks, the exercises and the lab's commands; never the checks."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from gpulab.images import locks
from gpulab.model import LabError
from gpulab.stack import FILE, Stacks

COMMANDS = ("tasks.py", "exercises", "src/gpulab", str(FILE))
"""What of the checkout is on a seat, below /lab."""
_AUTHORS_ONLY = "src/gpulab/catalogue/template"


@dataclass(frozen=True)
class Supplies:
    """Folders that replace a network: wheels, and archives of conda packages."""

    wheels: Path | None = None
    conda_packages: Path | None = None


def lay_out(root: Path, stacks: Stacks, stack: str, supplies: Supplies, target: Path) -> None:
    """Fill `target` with the build's context; every file gets the images' time and plain rights.

    Raises:
        LabError: a lock or an archive is missing.
    """
    shutil.copytree(root / "images" / "seat", target / "seat", ignore=_not("root"))
    shutil.copytree(root / "images" / "seat" / "root", target / "root")
    for part in COMMANDS:
        _copy(root / part, target / "root" / "lab" / part)
    shutil.rmtree(target / "root" / "lab" / _AUTHORS_ONLY, ignore_errors=True)
    wanted: list[locks.CondaPackage] = []
    for place, name in ((locks.LAB, locks.LAB), ("stack", stack)):
        wanted += _lay_out_lock(root, stacks, name, target / "locks" / place)
    _make_alike(target, stacks.shared.epoch)
    _link_wheels(supplies.wheels, target / "wheels")
    _link_packages(supplies.conda_packages, wanted, target / "conda-packages")


def _lay_out_lock(
    root: Path, stacks: Stacks, name: str, target: Path
) -> tuple[locks.CondaPackage, ...]:
    home = locks.folder(root, name)
    packages = locks.read_conda(home / locks.CONDA)
    locks.read_wheels(home / locks.WHEELS)  # refuse here what would fail late
    target.mkdir(parents=True)
    for file in (locks.CONDA, locks.WHEELS):
        shutil.copy(home / file, target / file)
    index = None if name == locks.LAB else stacks.find(name).wheel_index
    (target / "wheel-index").write_text(index or "", encoding="utf-8")
    return packages


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=_not("__pycache__", "*.pyc", ".*"))
    else:
        shutil.copy(source, target)


_not = shutil.ignore_patterns


def _make_alike(folder: Path, epoch: int) -> None:
    """One time and the usual rights for all: neither a checkout's umask nor its age counts."""
    for parent, _, files in os.walk(folder, topdown=False):
        for name in files:
            path = Path(parent, name)
            path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
            os.utime(path, (epoch, epoch))
        Path(parent).chmod(0o755)
        os.utime(parent, (epoch, epoch))


def _link_wheels(source: Path | None, target: Path) -> None:
    target.mkdir()
    if source is None:
        return
    wheels = sorted(source.glob("*.whl")) if source.is_dir() else []
    if not wheels:
        raise LabError(f"{source} holds no wheels; fill it with `invoke images.fetch`.")
    for wheel in wheels:
        _link(wheel, target / wheel.name)


def _link_packages(source: Path | None, wanted: list[locks.CondaPackage], target: Path) -> None:
    target.mkdir()
    for package in wanted if source else ():
        archive = Path(source or "", package.file_name)
        if not archive.is_file():
            raise LabError(f"{archive} is missing; fetch it with `invoke images.fetch`.")
        if not (target / archive.name).exists():
            _link(archive, target / archive.name)


def _link(source: Path, target: Path) -> None:
    """Without a copy where the file system allows it: a stack's wheels are gigabytes."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
