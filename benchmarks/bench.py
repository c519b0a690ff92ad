"""What a check costs, as ratios within one run; ends with 1 where a bound is broken.

python benchmarks/bench.py [PAIRS]
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from gpulab import attempts
from gpulab.attempts import Job, Launcher, Line, LocalLauncher, WarmPool
from gpulab.model import LabError
from gpulab.observe import Observer
from gpulab.service.client import Client

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


@contextmanager
def grader(home: Path) -> Iterator[Path]:
    """A grader's service of one seat, with warm attempts; yields its socket."""
    address, config = home / "grader.sock", home / "grader.toml"
    config.write_text(
        f"""root = "{CATALOGUE}"
state = "{home / "state"}"
[shares.one]
warm = true
[seats.one]
socket = "{address}"
share = "one"
uid = {os.getuid()}
gid = {os.getgid()}
"""
    )
    command = [sys.executable, "-m", "gpulab.service", "--config", str(config)]
    process = psutil.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield address
    finally:
        process.terminate()
        process.wait()


def until_ready(socket: Path) -> None:
    """Wait until the next check's processes are ready."""
    ready = False
    while not ready:
        time.sleep(0.2)
        with suppress(LabError):
            ready = Client(socket).get("/health")["ready"]


def warm_check(environment: dict[str, str]) -> tuple[float, float]:
    """Wall seconds of a check, and those of them that were not the attempt's own."""
    begun = time.monotonic()
    done = subprocess.run(CHECK, env=environment, cwd=HERE.parent, check=True, capture_output=True)
    wall = time.monotonic() - begun
    made = [a for c in json.loads(done.stdout)["checks"] for a in c["evidence"]["attempts"]]
    return wall, wall - sum(attempt["wall_s"] for attempt in made)


def warm_figures(environment: dict[str, str], pairs: int) -> list[Figure]:
    """A check of the grader's service beside plain pytest, in turn."""
    ratios, overheads = [], []
    with tempfile.TemporaryDirectory(prefix="gs-") as home, grader(Path(home)) as socket:
        seat = environment | {"GPULAB_GRADER": str(socket)}
        for _ in range(pairs):
            until_ready(socket)
            wall, overhead = warm_check(seat)
            until_ready(socket)
            ratios.append(wall / timed(PLAIN, environment))
            overheads.append(overhead)
    ratio, overhead = statistics.median(ratios), statistics.median(overheads)
    return [
        Figure("warm check / plain pytest with torch (median)", ratio, 0.5, "x"),
        Figure("warm check beyond the attempt itself (median)", overhead, 0.5, "s"),
    ]


def beginnings(pairs: int) -> float:
    """Warm attempts over cold ones: a script that imports torch, from the job to its output."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "train.py").write_text("import torch\nprint(torch.ones(1))\n", encoding="utf-8")
        job = Job(folder, "train.py", folder)
        with WarmPool(LocalLauncher(), job.setting) as pool:
            ratios = []
            for _ in range(pairs):
                pool.wait()  # nothing else is started while we measure
                ratios.append(first_line(job, pool) / first_line(job, LocalLauncher()))
    return statistics.median(ratios)


def first_line(job: Job, launcher: Launcher) -> float:
    """Seconds from the job to the first line that the attempt prints."""
    begun, came = time.monotonic(), []

    def listen(seen: Line | Observer) -> None:
        if isinstance(seen, Line):
            came.append(time.monotonic())

    attempts.run(job, listen, launcher=launcher)
    return came[0] - begun


def main() -> int:
    """Measure and print."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as work:
        shutil.copytree(SOLUTION.parent, Path(work) / "exercise-1")
        environment = {**os.environ, "GPULAB_ROOT": str(CATALOGUE), "GPULAB_WORK": work}
        timed(CHECK, environment), timed(PLAIN, environment)  # warm the page cache
        ratios = [timed(CHECK, environment) / timed(PLAIN, environment) for _ in range(pairs)]
        memory = grader_bytes(environment)
        warm = warm_figures(environment, pairs)
    figures = [
        Figure(
            "cold check / plain pytest with torch (median)", statistics.median(ratios), 1.5, "x"
        ),
        Figure("grader beside the attempt, private memory", memory / 2**20, 100, "MiB"),
        *warm,
        Figure("warm / cold attempt, to its first line (median)", beginnings(pairs), 0.5, "x"),
    ]
    for figure in figures:
        print(figure)
    return any(figure.value > figure.bound for figure in figures)


if __name__ == "__main__":
    sys.exit(main())
