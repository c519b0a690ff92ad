"""The locks: what exactly is installed in a seat's environments.

A seat has two environments: the stack's, on which attendees' scripts run, and the lab's own, the
same for all stacks. Each has a folder below images/locks/:

    environment.yml      what is wanted; written from stacks.yml
    conda-linux-64.lock  the conda packages, by address and sha256
    conda-packages.json  what the channel says of them, to prove offline that nothing is missing
    requirements.lock    the wheels, by name, version and sha256
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from gpulab.model import LabError
from gpulab.stack import Stack, Stacks

LAB = "lab"
PLATFORM = "linux-64"
ENVIRONMENT = "environment.yml"
CONDA = f"conda-{PLATFORM}.lock"
PACKAGES = "conda-packages.json"
WHEELS = "requirements.lock"


@dataclass(frozen=True)
class CondaPackage:
    """One conda package: its address and the sha256 of its archive."""

    url: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The archive's name: name-version-build.conda."""
        return self.url.rpartition("/")[2]

    @property
    def label(self) -> str:
        """name-version-build, as the installed environment records it."""
        return self.file_name.removesuffix(".conda").removesuffix(".tar.bz2")


@dataclass(frozen=True)
class Wheel:
    """One Python package: canonical name, version, marker, and the hashes that are accepted."""

    name: str
    version: str
    marker: Marker | None
    sha256: tuple[str, ...]

    @property
    def line(self) -> str:
        """Its line of a requirements file, without the marker."""
        return " ".join(
            [f"{self.name}=={self.version}", *(f"--hash=sha256:{each}" for each in self.sha256)]
        )

    def wanted(self, python: str) -> bool:
        """Whether it is installed on Linux, x86-64, on this Python ("3.12")."""
        if self.marker is None:
            return True
        target = {
            "python_version": python,
            "python_full_version": f"{python}.0",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
            "platform_machine": "x86_64",
            "platform_system": "Linux",
            "sys_platform": "linux",
            "os_name": "posix",
        }
        return self.marker.evaluate(target)


def folder(root: Path, name: str) -> Path:
    """Where the locks of an environment are: a stack's, or `LAB`."""
    return root / "images" / "locks" / name


def environment(stacks: Stacks, name: str, root: Path) -> dict[str, Any]:
    """What environment.yml holds: the wishes that stacks.yml (and pyproject.toml) express.

    Raises:
        LabError: no such stack.
    """
    if name == LAB:
        python = stacks.shared.lab.python
        wheels = [*_project_dependencies(root), *stacks.shared.lab.wheels]
    else:
        stack = stacks.find(name)
        python, wheels = stack.python, [_torch(stack), *stack.wheels]
    return {
        "name": name,
        "channels": [stacks.shared.channel],
        "platforms": [PLATFORM],
        "dependencies": [f"python {python}.*", "pip", {"pip": wheels}],
    }


def _torch(stack: Stack) -> str:
    """Where the build has an index of its own, its wheels carry the build in their version."""
    return f"torch=={stack.torch}" + (f"+{stack.build}" if stack.wheel_index else "")


def _project_dependencies(root: Path) -> list[str]:
    """What the lab's commands need: torch is the stack's business."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    needed: list[str] = project["project"]["dependencies"]
    return [need for need in needed if Requirement(need).name != "torch"]


def read_conda(path: Path) -> tuple[CondaPackage, ...]:
    """Read an explicit conda lock.

    Raises:
        LabError: it is missing, or a line has no sha256.
    """
    lines = [line.strip() for line in _text(path).splitlines()]
    packages = []
    for number, line in enumerate(lines, 1):
        if not line or line == "@EXPLICIT" or line.startswith("#"):
            continue
        match = re.fullmatch(r"(\S+/[^/\s]+\.(?:conda|tar\.bz2))#([0-9a-f]{64})", line)
        if match is None:
            raise LabError(
                f"{path}, line {number} is no address with a sha256; make the lock anew with "
                f"`invoke images.lock`."
            )
        packages.append(CondaPackage(match[1], match[2]))
    if "@EXPLICIT" not in lines or not packages:
        raise LabError(f"{path} is no explicit lock; make it anew with `invoke images.lock`.")
    return tuple(packages)


def read_wheels(path: Path) -> tuple[Wheel, ...]:
    """Read a requirements lock.

    Raises:
        LabError: it is missing, or an entry is not one exact version with a sha256.
    """
    text = re.sub(r"\\\n", " ", _text(path))
    entries = [line.strip() for line in text.splitlines()]
    return tuple(_wheel(path, entry) for entry in entries if entry and not entry.startswith("#"))


def _wheel(path: Path, entry: str) -> Wheel:
    wish, *options = re.split(r"\s+--hash=", entry)
    digests = [option.strip().removeprefix("sha256:") for option in options]
    try:
        requirement = Requirement(wish)
    except InvalidRequirement:
        raise LabError(f"{path}: {wish!r} is no requirement; make the lock anew.") from None
    (exact, *others) = requirement.specifier or (None,)
    if exact is None or exact.operator != "==" or others or requirement.url:
        raise LabError(f"{path}: {wish} is not one exact version; make the lock anew.")
    if not digests or not all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in digests):
        raise LabError(f"{path}: {wish} has no sha256; make the lock anew.")
    name = canonicalize_name(requirement.name)
    return Wheel(name, exact.version, requirement.marker, tuple(digests))


def read_packages(path: Path) -> list[dict[str, Any]]:
    """Read what the channel says of a lock's packages.

    Raises:
        LabError: it is missing or no JSON.
    """
    try:
        packages: list[dict[str, Any]] = json.loads(_text(path))
    except ValueError as error:
        raise LabError(f"{path} is no JSON ({error}); make the lock anew.") from None
    return packages


def conda_text(packages: list[dict[str, Any]]) -> str:
    """The explicit lock of these packages, in their order."""
    lines = [f"{package['url']}#{package['sha256']}" for package in packages]
    return "\n".join(["# Written by `invoke images.lock`.", "@EXPLICIT", *lines]) + "\n"


def packages_text(packages: list[dict[str, Any]]) -> str:
    """What the channel says of them, one package a line."""
    return "[\n" + ",\n".join(json.dumps(package) for package in packages) + "\n]\n"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise LabError(
            f"{path} is missing: make it with `invoke images.lock`, where there is a network."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"{path} cannot be read ({error}); restore it.") from None
