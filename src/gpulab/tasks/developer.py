"""What developers run: tests by tier, lint, benchmarks, and the hardware run."""

from __future__ import annotations

import os
import shutil
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

SLOW_MINUTES = 5


@dataclass(frozen=True)
class Tier:
    """A folder of tests.

    Attributes:
        name: the folder's, below tests/.
        minutes: about how long it takes on two cores.
        obstacle: why it cannot be run here; None: it can.
        options: pytest's.
        full: further options that make it try everything.
    """

    name: str
    minutes: int
    obstacle: str | None = None
    options: tuple[str, ...] = ()
    full: tuple[str, ...] = ()

    @property
    def slow(self) -> bool:
        """Whether it runs only when it is asked for."""
        return self.minutes > SLOW_MINUTES

    def left_out(self, tier: str, *, everything: bool) -> str | None:
        """Why it is not run when `tier` (or none by name) was asked for; None: it is."""
        if self.obstacle is not None:
            return self.obstacle
        if self.slow and not everything and tier != self.name:
            return f"it takes {self.minutes} minutes (`invoke test --tier {self.name}` runs it)"
        return None


def tiers() -> list[Tier]:
    """Every tier, the quick ones first."""
    two = ("-n", "2")
    return [
        Tier("unit", 4, options=two),
        Tier("claims", 1),
        Tier("catalogue", 5, options=("-n", "3")),  # attempts often wait
        Tier("rehearsal", 2, _no_rehearsal()),
        Tier("isolated", 8, _lacking("bwrap", "setpriv")),
        Tier("red_team", 4, _lacking("bwrap", "setpriv"), full=("--full",)),
        Tier("images", 20, _lacking("dockerd", "debootstrap")),
    ]


def _lacking(*programs: str) -> str | None:
    """Why tests that need root and these programs cannot run."""
    if os.geteuid() != 0:
        return "it needs root"
    missing = [program for program in programs if shutil.which(program) is None]
    return f"{' and '.join(missing)} cannot be found" if missing else None


def _no_rehearsal() -> str | None:
    if not Gpu().absent:
        return "this machine has a GPU, and the rehearsal device keeps away from one"
    python = Path(sys.executable)
    if machine.look_at_python(python, Path(__file__)).cuda is None:
        return "torch is a CPU build"
    return None


@command
def run_tests(
    _: Context,
    tier: str = "",
    match: str = "",
    all: bool = False,  # noqa: A002 - the option's name
    full: bool = False,
) -> int:
    """Run the quick tests, one --tier, or --all; --match as pytest's -k.

    --full lets the red team attack the level `local` and right work, too. Names each tier that
    did not run. With CI=true all run, and one that cannot is a failure.
    """
    ci = os.environ.get("CI") == "true"
    known = tiers()
    chosen = [t for t in known if tier in ("", t.name)]
    if not chosen:
        names = ", ".join(t.name for t in known)
        raise LabError(f"There is no tier {tier!r}; choose one of {names}.")
    codes, left_out = [0], []
    for each in chosen:
        if why := each.left_out(tier, everything=all or ci):
            left_out.append(f"Not run: tier {each.name}, because {why}.")
            continue
        options = [*each.options, *(each.full if full else ()), *(["-k", match] if match else [])]
        codes.append(_in_root(["-m", "pytest", f"tests/{each.name}", *options]))
    for sentence in left_out:
        complain(sentence)
    return max(*codes, int(ci and bool(left_out)))


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
