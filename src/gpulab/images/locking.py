"""Make the locks anew: needs a network, py-rattler and uv."""

from __future__ import annotations

import asyncio
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from gpulab.images import locks
from gpulab.model import LabError
from gpulab.stack import Stacks

HEADER = "# Written by `invoke images.lock` from images/stacks.yml.\n"
WHEELS_HEADER = "# Written by `invoke images.lock`; installed with --require-hashes --no-deps.\n"
GLIBC = "2.35"  # the oldest base image's
_FACTS = ("name", "version", "build", "build_number", "subdir", "depends", "constrains")


def environment_text(stacks: Stacks, name: str, root: Path) -> str:
    """environment.yml as it must be."""
    wishes = locks.environment(stacks, name, root)
    return HEADER + yaml.safe_dump(wishes, sort_keys=False, width=100)


def lock(root: Path, stacks: Stacks, name: str, wheelhouse: Path | None = None) -> None:
    """Write the four files of an environment; nothing is written unless all could be made.

    Args:
        root: the checkout.
        stacks: its pins.
        name: a stack, or `locks.LAB`.
        wheelhouse: a folder of wheels to look into besides the index.

    Raises:
        LabError: no such stack, a tool is missing, the channel or the index cannot be reached, or
            the wishes contradict each other.
    """
    wishes = locks.environment(stacks, name, root)
    packages = solve(wishes)
    home = locks.folder(root, name)
    home.mkdir(parents=True, exist_ok=True)
    wheels = _compile(stacks, name, wishes, wheelhouse)
    (home / locks.ENVIRONMENT).write_text(environment_text(stacks, name, root), encoding="utf-8")
    (home / locks.CONDA).write_text(locks.conda_text(packages), encoding="utf-8")
    (home / locks.PACKAGES).write_text(locks.packages_text(packages), encoding="utf-8")
    (home / locks.WHEELS).write_text(WHEELS_HEADER + wheels, encoding="utf-8")


def solve(wishes: dict[str, Any]) -> list[dict[str, Any]]:
    """The conda packages that fulfil an environment.yml, dependencies first.

    Raises:
        LabError: py-rattler is missing, the channel cannot be reached, or there is no solution.
    """
    rattler = _rattler()
    specs = [wish for wish in wishes["dependencies"] if isinstance(wish, str)]
    solution = rattler.solve(
        sources=wishes["channels"],
        specs=specs,
        platforms=[locks.PLATFORM, "noarch"],
        virtual_packages=virtual_packages(),
        timestamp_policy="allow-missing",
    )
    try:
        records = asyncio.run(_awaited(solution))
    except Exception as error:  # noqa: BLE001 - py-rattler has no common base for its errors
        said = " ".join(str(error).split())
        raise LabError(f"The conda packages cannot be resolved: {said}") from None
    by_name = {record.name.normalized: record for record in records}
    in_order = rattler.PackageRecord.sort_topologically(records)
    return [_facts(by_name[record.name.normalized]) for record in in_order]


def virtual_packages() -> list[Any]:
    """What the base images offer: Linux on x86-64 with their glibc."""
    rattler = _rattler()
    offered = {"__linux": "5.15", "__glibc": GLIBC, "__unix": "0", "__archspec": "1"}
    return [
        rattler.GenericVirtualPackage(
            rattler.PackageName(name),
            rattler.Version(version),
            rattler.BuildString("x86_64" if name == "__archspec" else "0"),
        )
        for name, version in offered.items()
    ]


def _rattler() -> Any:
    try:
        return importlib.import_module("rattler")
    except ImportError:
        raise LabError("Locking needs py-rattler; install gpulab with its images extra.") from None


async def _awaited(solution: Any) -> list[Any]:
    return list(await solution)


def _facts(record: Any) -> dict[str, Any]:
    facts = {name: getattr(record, name) for name in _FACTS}
    facts |= {"name": record.name.normalized, "version": str(record.version)}
    facts |= {"build": str(record.build), "subdir": str(record.subdir)}
    facts |= {"md5": record.md5 and record.md5.hex(), "sha256": record.sha256.hex()}
    return facts | {"url": record.url}


def _compile(stacks: Stacks, name: str, wishes: dict[str, Any], wheelhouse: Path | None) -> str:
    """The wheels that fulfil an environment.yml, with every hash that the index knows."""
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    if uv is None:
        raise LabError("Locking needs uv; install gpulab with its images extra.")
    (wheels,) = (wish["pip"] for wish in wishes["dependencies"] if isinstance(wish, dict))
    command = [uv, "pip", "compile", "-", "--quiet", "--generate-hashes", "--no-annotate"]
    command += ["--no-header", "--no-emit-index-url", "--no-emit-find-links"]
    if name == locks.LAB:  # also tried on the oldest Python that the lab supports
        command += ["--universal", "--python-version", "3.11"]
    else:
        stack = stacks.find(name)
        command += ["--python-version", stack.python]
        command += ["--python-platform", "x86_64-manylinux_2_28"]
        if stack.wheel_index:
            command += ["--index", stack.wheel_index, "--index-strategy", "unsafe-best-match"]
    if wheelhouse:
        command += ["--find-links", str(wheelhouse)]
    done = subprocess.run(
        command, input="\n".join(wheels), capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = " ".join(done.stderr.split())
        raise LabError(f"The wheels of {name} cannot be resolved: {said}")
    return done.stdout
