"""measure.amp: precision, the scale, vanishing gradients, steps left out."""

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

TRAINED = (("float32", False), ("float16", False), ("float16", True), ("bfloat16", False))
STEPS = 30


class Amp(Measurement):
    """A training with small gradients, and one step that overflows in half precision."""

    name = "amp"
    title = "Mixed precision: the scale, vanishing gradients, a step left out"
    article = "The scale starts at 65536 and falls to 32768 when a gradient overflows."
    columns = (
        Column("trained", "trained in"),
        Column("zeros", "gradients that are zero", "{:.0%}"),
        Column("left_out", "steps left out"),
        Column("scale", "scale at the end", "{:.0f}"),
        Column("state", "weights"),
        Column("step_ms", "step, ms", "{:.1f}"),
        Column("article", "article: scale", "{:.0f}"),
    )
    seconds_a_case = 8.0
    mib = 700

    @property
    def cases(self) -> list[Case]:
        """The four ways."""
        return [
            {"precision": precision, "scaled": scaled, "steps": STEPS}
            for precision, scaled in TRAINED
        ]

    def row(self, case: Case, attempt: Attempt) -> Row:
        """As the script tells it."""
        measured = answer(attempt)
        scaled = case["scaled"]
        return {
            "trained": case["precision"] + (", scaled" if scaled else ""),
            "zeros": measured["zeros"],
            "left_out": measured["left_out"],
            "scale": measured["scales"][-1] if scaled else None,
            "scales": measured["scales"],
            "state": "not finite" if measured["broken"] else "finite",
            "step_ms": measured["step_ms"],
            "article": 32768 if scaled else None,
        }

    def merge(self, rows: list[Row]) -> list[Row]:
        """The first run of each, which the seed makes the same; the median of the time."""
        return [
            {**runs[0], "step_ms": middle(runs, "step_ms")}
            for runs in group(rows, "trained").values()
        ]

    def draw(self, figure: Figure, rows: list[Row]) -> None:
        """The scale over the steps; the share of gradients that vanish."""
        scale, zeros = figure.subplots(1, 2)
        for row in rows:
            if row["scale"] is not None:
                scale.step(
                    range(len(row["scales"])), row["scales"], where="mid", color=OURS, label="here"
                )
        for height in (65536, 32768):
            scale.axhline(height, color=THEIRS, linestyle="--", label=f"article: {height}")
        scale.set_ylim(0, 75000)
        scale.set_xlabel("steps, of which one overflows")
        scale.set_title("the scale of the loss", fontsize=9)
        scale.legend(fontsize=8, loc="lower left")
        names = [row["trained"].replace(", ", ",\n") for row in rows]
        zeros.bar(names, [100 * row["zeros"] for row in rows], color=OURS)
        zeros.set_title("gradients that are zero, %", fontsize=9)
        zeros.set_ylim(0, 105)
