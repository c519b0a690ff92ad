"""measure.zero-grad: what set_to_none saves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulab.attempts import Attempt
from gpulab.measure.measurement import (
    OURS,
    THEIRS,
    Case,
    Column,
    Measurement,
    Row,
    answer,
    group,
    middle,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAVES = ("default", "none", "zeros")
SAVED = 0.18
STEPS, WIDTH = 12, 1024
MIB = 2**20


class ZeroGrad(Measurement):
    """A training step with None, with zeros, and with what torch does unasked."""

    name = "zero-grad"
    title = "What zero_grad(set_to_none=True) saves"
    article = (
        "It saves 18 % of the memory (true of torch before 2.0, where it was not the default)."
    )
    columns = (
        Column("leaves", "zero_grad leaves"),
        Column("cleared_mib", "after it, MiB", "{:.0f}"),
        Column("peak_mib", "at most, MiB", "{:.0f}"),
        Column("saved", "less than the default", "{:.0%}"),
        Column("below_zeros", "less than zeros", "{:.0%}"),
        Column("step_ms", "step, ms", "{:.0f}"),
        Column("article", "article", "{:.0%}"),
    )
    seconds_a_case = 10.0
    mib = 1000

    @property
    def cases(self) -> list[Case]:
        """The three."""
        return [{"leaves": leaves, "steps": STEPS, "width": WIDTH} for leaves in LEAVES]

    def row(self, case: Case, attempt: Attempt) -> Row:
        """Memory above what was there before the model."""
        measured = answer(attempt)
        moments = [(moment, used / MIB) for moment, used in measured["used"]]
        return {
            "leaves": case["leaves"],
            "cleared_mib": moments[0][1],
            "peak_mib": max(used for _, used in moments),
            "step_ms": measured["step_ms"],
            "moments": moments,
        }

    def merge(self, rows: list[Row]) -> list[Row]:
        """Medians; the moments of the first run."""
        keys = ("cleared_mib", "peak_mib", "step_ms")
        groups = group(rows, "leaves")
        merged = []
        for (leaves,), runs in groups.items():
            row = {key: middle(runs, key) for key in keys}
            less = {
                key: 1 - row["peak_mib"] / middle(groups[other,], "peak_mib")
                for key, other in (("saved", "default"), ("below_zeros", "zeros"))
                if (other,) in groups
            }
            theirs = SAVED if leaves == "none" else None
            last = {"article": theirs, "moments": runs[0]["moments"]}
            merged.append({"leaves": leaves, **row, **less, **last})
        return merged

    def draw(self, figure: Figure, rows: list[Row]) -> None:
        """Memory through one step, and the peaks beside the article's saving."""
        course, peaks = figure.subplots(1, 2, width_ratios=(2, 1))
        colours = {"default": "#38a169", "none": OURS, "zeros": "#dd6b20"}
        for row in rows:
            style = "--" if row["leaves"] == "default" else "-"
            used = [used for _, used in row["moments"]]
            course.plot(used, style, color=colours[row["leaves"]], label=row["leaves"], marker=".")
        names = [moment for moment, _ in rows[0]["moments"]]
        marks = [at for at, name in enumerate(names) if not name.startswith("a layer")]
        course.set_xticks(marks, [names[at] for at in marks], rotation=20)
        course.set_ylabel("MiB above the start")
        course.set_ylim(bottom=0)
        course.legend(title="zero_grad leaves")
        heights = [row["peak_mib"] for row in rows]
        peaks.bar(
            [row["leaves"] for row in rows], heights, color=[colours[r["leaves"]] for r in rows]
        )
        claimed = (1 - SAVED) * max(heights)
        peaks.axhline(claimed, color=THEIRS, linestyle="--")
        peaks.set_title("at most, MiB\n(dashed: the article, 18 % below zeros)", fontsize=9)
