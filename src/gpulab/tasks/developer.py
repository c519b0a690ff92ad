"""What developers run: tests by tier, lint, benchmarks, and the hardware run."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from invoke import Context

from gpulab import hardware as hardware_run
from gpulab.catalogue import find_root
from gpulab.grading import machine
from gpulab.model import Device, LabError
from gpulab.observe import Gpu
from gpulab.tasks.command import chosen_device, command, complain, console


@dataclass(frozen=True)
class Tier:
    """A folder of tests, and why it cannot be run here (None: it can)."""

    name: str
    obstacle: str | None = None

    @property
    def folder(self) -> str:
        """Where its tests are."""
        return f"tests/{self.name}"


def tiers() -> list[Tier]:
    """Every tier, the quick ones first."""
    return [Tier("unit"), Tier("catalogue"), Tier("rehearsal", _no_rehearsal())]


def _no_rehearsal() -> str | None:
    if not Gpu().absent:
        return "this machine has a GPU, and the rehearsal device keeps away from one"
    python = Path(sys.executable)
    if machine.look_at_python(python, Path(__file__)).cuda is None:
        return "torch is a CPU build"
    return None


@command
def test(_: Context, tier: str = "", match: str = "") -> int:  # noqa: PT028 - no test of pytest's
    """Run the tests, or one --tier; --match as pytest's -k. Names each tier that did not run.

    With CI=true a tier that cannot be run is a failure.
    """
    known = tiers()
    chosen = [t for t in known if tier in ("", t.name)]
    if not chosen:
        raise LabError(
            f"There is no tier {tier!r}; choose one of {', '.join(t.name for t in known)}."
        )
    folders = [t.folder for t in chosen if t.obstacle is None]
    code = _in_root(["-m", "pytest", *folders, *(["-k", match] if match else [])]) if folders else 0
    left_out = [t for t in chosen if t.obstacle is not None]
    for each in left_out:
        complain(f"Not run: tier {each.name}, because {each.obstacle}.")
    if left_out and os.environ.get("CI") == "true":
        return code or 1
    return code


@command
def lint(_: Context) -> int:
    """Check style, types and who imports whom."""
    steps = [
        ["-m", "ruff", "check", "."],
        ["-m", "ruff", "format", "--check", "."],
        ["-m", "mypy"],
        ["-c", "from importlinter.cli import lint_imports_command as run; run()"],
    ]
    return max(_in_root(step) for step in steps)


@command
def bench(_: Context) -> int:
    """Measure what a check costs, as ratios within one run."""
    return _in_root(["benchmarks/bench.py"])


@command
def hardware(_: Context, budget: float = 240.0, device: str | None = None, out: str = "") -> int:
    """Confirm every exercise on the GPU at hand within --budget seconds; writes evidence."""
    kind = chosen_device(device) or hardware_run.default_device()
    if kind is Device.CUDA and (absent := Gpu().absent):
        raise LabError(f"No GPU to confirm anything on: {absent}. Try --device rehearsal.")
    path = Path(out or "hardware-evidence.json")
    return hardware_run.confirm(kind, budget, path, console)


def _in_root(arguments: list[str]) -> int:
    done = subprocess.run([sys.executable, *arguments], cwd=find_root(), check=False)
    return 1 if done.returncode else 0
