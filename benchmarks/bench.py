"""What a check costs, as ratios within one run; ends with 1 where a bound is broken.

python benchmarks/bench.py [PAIRS]
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

HERE = Path(__file__).resolve().parent
CATALOGUE = HERE / "catalogue"
SOLUTION = CATALOGUE / "checks/exercise-1/solutions/mean/train.py"
CHECK = [sys.executable, "-m", "invoke", "check", "1", "--json"]
PLAIN = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "plain")]


@dataclass(frozen=True)
class Figure:
    """One measured figure and its bound."""

    name: str
    value: float
    bound: float
    unit: str

    def __str__(self) -> str:
        """A line of the table."""
        held = "ok" if self.value <= self.bound else "BROKEN"
        return f"{self.name:55s} {self.value:8.2f} {self.unit:4s} (bound {self.bound:g}) {held}"


def timed(command: list[str], environment: dict[str, str]) -> float:
    """Wall seconds of a command that must succeed."""
    begun = time.monotonic()
    subprocess.run(command, env=environment, cwd=HERE.parent, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begun


def grader_bytes(environment: dict[str, str]) -> int:
    """Peak private memory of the client and the grading process, the attempt left out."""
    client = psutil.Popen(CHECK, env=environment, cwd=HERE.parent, stdout=subprocess.DEVNULL)
    peak = 0
    while client.poll() is None:
        with suppress(psutil.Error):
            # The judge is the client's child; the attempt is the judge's.
            grader = [client, *client.children()]
            peak = max(peak, sum(process.memory_full_info().uss for process in grader))
        time.sleep(0.02)
    return peak


def main() -> int:
    """Measure and print."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as work:
        shutil.copytree(SOLUTION.parent, Path(work) / "exercise-1")
        environment = {**os.environ, "GPULAB_ROOT": str(CATALOGUE), "GPULAB_WORK": work}
        timed(CHECK, environment), timed(PLAIN, environment)  # warm the page cache
        ratios = [timed(CHECK, environment) / timed(PLAIN, environment) for _ in range(pairs)]
        memory = grader_bytes(environment)
    figures = [
        Figure(
            "cold check / plain pytest with torch (median)", statistics.median(ratios), 1.5, "x"
        ),
        Figure("grader beside the attempt, private memory", memory / 2**20, 100, "MiB"),
    ]
    for figure in figures:
        print(figure)
    return any(figure.value > figure.bound for figure in figures)


if __name__ == "__main__":
    sys.exit(main())
