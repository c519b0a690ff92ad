"""measure.deadlock: how often each start method hangs, by cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulab.attempts import Attempt, Ended
from gpulab.measure.measurement import (
    OURS,
    THEIRS,
    Case,
    Column,
    FailedError,
    Measurement,
    Row,
    group,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("fork", "spawn", "forkserver")
CAUSES = (
    "nothing",
    "lock_held_by_a_thread",
    "threads_of_openmp",
    "inherited_pool",
    "queue_read_too_late",
    "join_before_get",
    "lock_around_the_loop",
)
ARTICLE = {"fork": 0.37, "spawn": 0.002}


class Deadlock(Measurement):
    """A loader for every cause and start method, until it ends or is found to hang."""

    name = "deadlock"
    title = "How often a loader hangs, by cause and start method"
    article = "8 workers: fork hung in 37 % of the runs, spawn in 0.2 %; no cause is given."
    columns = (
        Column("cause", "cause"),
        Column("method", "start method"),
        Column("hung", "hung"),
        Column("ended", "ended well"),
        Column("refused", "refused"),
        Column("seconds", "seconds", "{:.1f}"),
        Column("article", "article", "{:.1%}"),
    )
    seconds_a_case = 6.0
    mib = 800
    limit = 60.0

    @property
    def cases(self) -> list[Case]:
        """Every cause under every method."""
        return [{"cause": cause, "method": method} for cause in CAUSES for method in METHODS]

    def row(self, case: Case, attempt: Attempt) -> Row:
        """Whether it hung; refused: an error says that this cannot be sent to a worker."""
        refused = attempt.error is not None and "pickle" in attempt.error.message
        if not (attempt.answered or refused or attempt.ended is Ended.HANG):
            raise FailedError(attempt.error.message if attempt.error else attempt.ended.value)
        return {
            **case,
            "hung": attempt.ended is Ended.HANG,
            "ended": attempt.answered,
            "refused": refused,
            "seconds": attempt.evidence.wall,
        }

    def merge(self, rows: list[Row]) -> list[Row]:
        """Counts."""
        merged = []
        for (cause, method), runs in group(rows, "cause", "method").items():
            counts = {key: sum(row[key] for row in runs) for key in ("hung", "ended", "refused")}
            longest = max(row["seconds"] for row in runs)
            last = {"runs": len(runs), "seconds": longest, "article": ARTICLE.get(method)}
            merged.append({"cause": cause.replace("_", " "), "method": method, **counts, **last})
        return merged

    def draw(self, figure: Figure, rows: list[Row]) -> None:
        """Shares of runs that hung, by cause; the article's shares as lines."""
        axes = figure.subplots()
        causes = list(dict.fromkeys(row["cause"] for row in rows))
        for index, method in enumerate(METHODS):
            mine = {row["cause"]: row for row in rows if row["method"] == method}
            places = [at + (index - 1) * 0.27 for at, cause in enumerate(causes) if cause in mine]
            shares = [100 * row["hung"] / row["runs"] for row in mine.values()]
            colour = (OURS, "#dd6b20", "#38a169")[index]
            axes.bar(places, shares, 0.25, color=colour, label=method)
            for place, row in zip(places, mine.values(), strict=True):
                if row["refused"]:
                    axes.text(place, 2, "refused", rotation=90, ha="center", fontsize=8)
            if method in ARTICLE:
                height = 100 * ARTICLE[method]
                axes.axhline(height, color=THEIRS, linestyle="--")
                beside = axes.get_yaxis_transform()
                axes.text(0.005, height + 1, f"article: {method}", fontsize=8, transform=beside)
        axes.set_xticks(range(len(causes)), [cause.replace(" ", "\n", 2) for cause in causes])
        axes.tick_params(axis="x", labelsize=8)
        axes.set_ylabel("runs that hung, %")
        axes.set_ylim(0, 105)
        axes.legend(ncols=3, loc="upper left", bbox_to_anchor=(0, 1.12), frameon=False)
