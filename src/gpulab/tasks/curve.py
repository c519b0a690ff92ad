"""Memory over time, in the terminal and as PNG or SVG."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.text import Text

from gpulab.model import Grade, LabError
from gpulab.observe.model import MemorySample

WIDTH, HEIGHT = 60, 6
BLOCKS = " ▁▂▃▄▅▆▇█"


def draw(curves: Mapping[str, Sequence[MemorySample]]) -> Text:
    """Private memory over time as block characters, all curves on one scale.

    Each is WIDTH columns by HEIGHT rows, under its name where there are several.
    """
    known = {name: samples for name, samples in curves.items() if samples}
    if not known:
        return Text("(no memory was measured)", style="dim")
    end = max(samples[-1].at for samples in known.values()) or 1.0
    peak = max(sample.private for samples in known.values() for sample in samples) or 1
    rows = []
    for name, samples in known.items():
        rows += [name] * (len(known) > 1) + _rows(samples, end, peak)
    return Text("\n".join(rows), style="cyan")


def _rows(samples: Sequence[MemorySample], end: float, peak: int) -> list[str]:
    columns = [0] * (min(WIDTH - 1, int(samples[-1].at / end * WIDTH)) + 1)
    for sample in samples:
        column = min(len(columns) - 1, int(sample.at / end * WIDTH))
        columns[column] = max(columns[column], sample.private)
    for at in range(1, len(columns)):
        columns[at] = columns[at] or columns[at - 1]
    rows = []
    for row in reversed(range(HEIGHT)):
        cells = [value / peak * HEIGHT - row for value in columns]
        blocks = "".join(BLOCKS[round(min(1.0, max(0.0, cell)) * 8)] for cell in cells)
        rows.append(blocks.ljust(WIDTH))
    rows[0] += f" {peak >> 20} MiB"
    rows[-1] += f" {end:.0f} s"
    return rows


def save(path: Path, curves: Mapping[str, Sequence[MemorySample]]) -> None:
    """Write the curves to `path`, whose suffix (.png, .svg) decides the format.

    Raises:
        LabError: as `check_target`, or the file cannot be written.
    """
    check_target(path)
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra that not everyone has

    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    for name, samples in curves.items():
        axes.plot([s.at for s in samples], [s.private / 2**20 for s in samples], label=name)
    axes.set_xlabel("seconds")
    axes.set_ylabel("private memory, MiB")
    axes.set_ylim(bottom=0)
    axes.legend()
    try:
        figure.savefig(path)
    except OSError as error:
        raise LabError(f"{path} cannot be written ({error.strerror}).") from None


def check_target(path: Path) -> None:
    """Refuse what `save` cannot write, before anything has been measured for it.

    Raises:
        LabError: a suffix that is neither .png nor .svg, or no matplotlib.
    """
    if path.suffix.lower() not in {".png", ".svg"}:
        raise LabError(f"{path} must end in .png or .svg.")
    if importlib.util.find_spec("matplotlib") is None:
        raise LabError("Plots need matplotlib; install it with `pip install -e '.[plot]'`.")


def samples(rows: Sequence[Sequence[float]]) -> list[MemorySample]:
    """Samples from an attempt's evidence as JSON: rows of seconds, private bytes, GPU bytes."""
    return [MemorySample(at, int(private), 0, None) for at, private, _ in rows]


def of_grade(grade: Grade) -> list[MemorySample]:
    """The memory of a check run's longest attempt."""
    made = [attempt for check in grade.checks for attempt in check.evidence.get("attempts", [])]
    if not made:
        return []
    return samples(max(made, key=lambda attempt: attempt["wall_s"])["memory"])
