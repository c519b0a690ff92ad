"""measure.loader: memory, device use and epoch time by the number of workers."""

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

WORKERS = (0, 2, 4, 8)
IMAGES, SIDE = 1500, 320
ARTICLE = {  # workers: memory in GB, GPU use, seconds of an epoch; 100,000 images, RTX 4090
    0: (8.2, 0.65, 214),
    2: (14.7, 0.82, 178),
    4: (22.3, 0.89, 165),
    8: (38.1, 0.87, 168),
}


class Loader(Measurement):
    """One epoch over images for each number of workers."""

    name = "loader"
    title = "What loader workers cost and bring"
    article = (
        "RTX 4090, 100,000 images: workers 0 / 2 / 4 / 8 took 8.2 / 14.7 / 22.3 / 38.1 GB, used "
        "the GPU 65 / 82 / 89 / 87 %, and needed 214 / 178 / 165 / 168 s."
    )
    columns = (
        Column("workers", "workers"),
        Column("memory_mib", "memory, MiB", "{:.0f}"),
        Column("busy", "device use", "{:.0%}"),
        Column("epoch_s", "epoch, s", "{:.1f}"),
        Column("article_memory_gb", "article: GB", "{:.1f}"),
        Column("article_busy", "use", "{:.0%}"),
        Column("article_epoch_s", "s", "{:.0f}"),
    )
    seconds_a_case = 15.0
    mib = 4000

    @property
    def cases(self) -> list[Case]:
        """One for each number of workers."""
        return [{"workers": workers, "images": IMAGES, "side": SIDE} for workers in WORKERS]

    def row(self, case: Case, attempt: Attempt) -> Row:
        """As the script tells it: from outside, pages that workers share count twice or never."""
        return {"workers": case["workers"], **answer(attempt)}

    def merge(self, rows: list[Row]) -> list[Row]:
        """Medians."""
        merged = []
        for (workers,), runs in group(rows, "workers").items():
            memory, busy, epoch = ARTICLE[workers]
            row = {key: middle(runs, key) for key in ("memory_mib", "busy", "epoch_s")}
            theirs = {
                "article_memory_gb": memory,
                "article_busy": busy,
                "article_epoch_s": epoch,
            }
            merged.append({"workers": workers, **row, **theirs})
        return merged

    def draw(self, figure: Figure, rows: list[Row]) -> None:
        """Three panels; memory and time relative to no workers, as the machines are not alike."""
        panels = (
            ("memory, relative to no workers", "memory_mib", "article_memory_gb", True),
            ("device use", "busy", "article_busy", False),
            ("epoch time, relative to no workers", "epoch_s", "article_epoch_s", True),
        )
        places = range(len(rows))
        for axes, (title, ours, theirs, relative) in zip(
            figure.subplots(1, 3), panels, strict=True
        ):
            for key, colour, label, shift in (
                (ours, OURS, "here", -0.2),
                (theirs, THEIRS, "article", 0.2),
            ):
                base = rows[0][key] if relative else 1.0
                heights = [row[key] / base for row in rows]
                axes.bar([p + shift for p in places], heights, 0.4, color=colour, label=label)
            axes.set_title(title, fontsize=9)
            axes.set_xticks(list(places), [str(row["workers"]) for row in rows])
            axes.set_xlabel("workers")
        figure.axes[0].legend()
