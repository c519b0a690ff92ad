"""measure.spawn: what starting workers costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulab.attempts import Attempt
from gpulab.measure.measurement import THEIRS, Case, Column, Measurement, Row, answer, group, middle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("fork", "forkserver", "spawn")
WORKERS = (1, 2, 4)
LATER = 0.2  # seconds, the article's


class Spawn(Measurement):
    """The time to the first batch."""

    name = "spawn"
    title = "Seconds to the first batch, by start method"
    article = "Spawn starts 200 ms later than fork."
    columns = (
        Column("method", "start method"),
        Column("workers", "workers"),
        Column("first_s", "to the first batch, s", "{:.2f}"),
        Column("later_s", "later than fork, s", "{:.2f}"),
        Column("article", "article", "{:.1f}"),
    )
    usual_runs = 3
    seconds_a_case = 9.0
    mib = 1500

    @property
    def cases(self) -> list[Case]:
        """Every method with every number of workers."""
        return [{"method": method, "workers": workers} for workers in WORKERS for method in METHODS]

    def row(self, case: Case, attempt: Attempt) -> Row:
        """As the script tells it."""
        return {**case, **answer(attempt)}

    def merge(self, rows: list[Row]) -> list[Row]:
        """Medians, and the distance to fork with as many workers."""
        merged: list[Row] = []
        groups = group(rows, "method", "workers")
        for (method, workers), runs in groups.items():
            first = middle(runs, "first_s")
            forked = groups.get(("fork", workers))
            later = first - middle(forked, "first_s") if forked and method != "fork" else None
            theirs = LATER if method == "spawn" else None
            row = {"method": method, "workers": workers, "first_s": first}
            merged.append({**row, "later_s": later, "article": theirs})
        return merged

    def draw(self, figure: Figure, rows: list[Row]) -> None:
        """A line for each method; the article's claim from fork's line upwards."""
        axes = figure.subplots()
        for method in METHODS:
            mine = [row for row in rows if row["method"] == method]
            workers = [row["workers"] for row in mine]
            axes.plot(workers, [row["first_s"] for row in mine], marker="o", label=method)
            if method == "fork":
                claimed = [row["first_s"] + LATER for row in mine]
                axes.plot(workers, claimed, "--", color=THEIRS, label="article: spawn")
        axes.set_xlabel("workers")
        axes.set_xticks(sorted({row["workers"] for row in rows}))
        axes.set_ylabel("seconds to the first batch")
        axes.set_ylim(bottom=0)
        axes.legend()
