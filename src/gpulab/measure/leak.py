"""measure.leak: how memory grows by what is kept of every step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulab.attempts import Attempt
from gpulab.measure.measurement import THEIRS, Case, Column, Measurement, Row, answer, group, middle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEPT = (
    "loss.item()",
    "loss.detach()",
    "loss, after backward",
    "loss, without backward",
    "prediction, no_grad",
    "prediction[:1], no_grad",
    "prediction[:1].clone(), no_grad",
)
STEPS = 120
ARTICLE = {"prediction, no_grad": 1.2}  # GB an hour


class Leak(Measurement):
    """A loop for each thing that people keep."""

    name = "leak"
    title = "How memory grows by what a loop keeps of every step"
    article = "A logger that keeps predictions: 1.2 GB an hour, because they hold the whole model."
    columns = (
        Column("kept", "kept of every step"),
        Column("kib_a_step", "KiB a step", "{:.1f}"),
        Column("step_ms", "step, ms", "{:.1f}"),
        Column("gb_an_hour", "GB an hour at that pace", "{:.2f}"),
        Column("article", "article", "{:.1f}"),
    )
    seconds_a_case = 8.0
    mib = 900

    @property
    def cases(self) -> list[Case]:
        """Each kept thing."""
        return [{"kept": kept, "steps": STEPS} for kept in KEPT]

    def row(self, case: Case, attempt: Attempt) -> Row:
        """The growth over the second half, when everything that is made once is there."""
        measured = answer(attempt)
        grown = measured["grown"]
        half = len(grown) // 2
        a_step = (grown[-1] - grown[half]) / (len(grown) - 1 - half)
        return {
            "kept": case["kept"],
            "kib_a_step": a_step / 1024,
            "step_ms": measured["step_ms"],
            "gb_an_hour": a_step * 3.6e6 / measured["step_ms"] / 1e9,
            "grown": grown,
        }

    def merge(self, rows: list[Row]) -> list[Row]:
        """Medians; the curve of the first run."""
        keys = ("kib_a_step", "step_ms", "gb_an_hour")
        return [
            {
                "kept": kept,
                **{key: middle(runs, key) for key in keys},
                "article": ARTICLE.get(kept),
                "grown": runs[0]["grown"],
            }
            for (kept,), runs in group(rows, "kept").items()
        ]

    def draw(self, figure: Figure, rows: list[Row]) -> None:
        """Growth over the steps, logarithmic: from KiB to hundreds of MiB."""
        axes = figure.subplots()
        for index, row in enumerate(rows):
            grown = [max(0.0, used / 1024) for used in row["grown"]]
            label = f"{row['kept']}: {row['kib_a_step']:.1f} KiB a step"
            axes.plot(grown, label=label, linewidth=4 - index / 2)  # equal ones stay visible
            if row["article"] is not None:
                a_step = row["article"] * 1e9 / 1024 / 3.6e6 * row["step_ms"]
                line = [a_step * step for step in range(len(grown))]
                axes.plot(line, "--", color=THEIRS, label="article: 1.2 GB an hour, at this pace")
        axes.set_yscale("symlog", linthresh=16)
        axes.set_xlabel("steps")
        axes.set_ylabel("KiB more than after the first steps")
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
