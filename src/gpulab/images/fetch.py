"""Fetch what a build needs into a folder, for a room without a network. Every hash is checked."""

from __future__ import annotations

import hashlib
import http.client
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path

from gpulab.images import locks
from gpulab.images.context import Supplies
from gpulab.model import LabError
from gpulab.stack import Stacks

_GLIBCS = (5, 12, 17, 24, 26, 27, 28, 31, 34, 35)
_PLATFORMS = (
    "linux_x86_64",
    "manylinux1_x86_64",
    "manylinux2010_x86_64",
    "manylinux2014_x86_64",
    *(f"manylinux_2_{minor}_x86_64" for minor in _GLIBCS),
)
_CHUNK = 1 << 20


def fetch(
    root: Path, stacks: Stacks, name: str, target: Path, tell: Callable[[str], None]
) -> Supplies:
    """Fill `target`/conda-packages and `target`/wheels; what is there and right is kept.

    Raises:
        LabError: something cannot be fetched, or its hash differs from the lock's.
    """
    supplies = Supplies(target / "wheels", target / "conda-packages")
    stack = stacks.find(name)
    pythons = {locks.LAB: stacks.shared.lab.python, name: stack.python}
    try:
        for folder in (target / "wheels", target / "conda-packages"):
            folder.mkdir(parents=True, exist_ok=True)
        for each, python in pythons.items():
            home = locks.folder(root, each)
            for package in locks.read_conda(home / locks.CONDA):
                tell(package.label)
                _fetch_archive(package, target / "conda-packages" / package.file_name)
            tell(f"wheels of {each}")
            index = None if each == locks.LAB else stack.wheel_index
            _fetch_wheels(home / locks.WHEELS, python, index, target / "wheels")
    except (OSError, http.client.HTTPException) as error:
        raise LabError(f"Cannot fetch into {target}: {error}; mend that and try again.") from None
    return supplies


def _fetch_archive(package: locks.CondaPackage, target: Path) -> None:
    if target.is_file() and _sha256(target) == package.sha256:
        return
    partial = target.with_name(target.name + ".part")
    try:
        with urllib.request.urlopen(package.url, timeout=60) as source, partial.open("wb") as file:  # noqa: S310 - the lock's own address
            while chunk := source.read(_CHUNK):
                file.write(chunk)
        if (found := _sha256(partial)) != package.sha256:
            raise LabError(
                f"{package.url} has the sha256 {found}, not {package.sha256} as locked; do not "
                "use it, and find out which is right."
            )
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch_wheels(lock: Path, python: str, index: str | None, target: Path) -> None:
    """The stack's own index is asked for its own builds alone: those with a local version."""
    wanted = [wheel for wheel in locks.read_wheels(lock) if wheel.wanted(python)]
    own = [wheel for wheel in wanted if "+" in wheel.version]
    rest = [wheel for wheel in wanted if "+" not in wheel.version]
    extra = ["--extra-index-url", index] if index else []
    for wheels, options in ((rest, []), (own, extra)):
        if wheels:
            _download(lock.parent.name, wheels, ["--python-version", python, *options], target)


def _download(name: str, wheels: list[locks.Wheel], options: list[str], target: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "--implementation", "cp", *options]
    for platform in _PLATFORMS:
        command += ["--platform", platform]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.writelines(f"{wheel.line}\n" for wheel in wheels)
        file.flush()
        command += ["--requirement", file.name, "--dest", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "ERROR" in line]
        said = " ".join(" ".join(errors or done.stderr.splitlines()[-2:]).split())
        raise LabError(f"The wheels of {name} cannot be fetched: {said}")
