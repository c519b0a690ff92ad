"""What was measured so far, and the ways to write it down."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpulab.measure.measurement import Measurement, Row
from gpulab.model import Device, LabError


@dataclass
class Results:
    """Rows, one a run; what they were measured on; what failed."""

    measurement: Measurement
    machine: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    complete: bool = False

    @classmethod
    def begin(
        cls, measurement: Measurement, device: Device, gpu: str | None, torch: str
    ) -> Results:
        """Nothing measured yet."""
        cpus = len(os.sched_getaffinity(0))
        return cls(measurement, {"device": device.value, "gpu": gpu, "torch": torch, "cpus": cpus})

    def add(self, row: Row) -> None:
        """One more run."""
        self.rows.append(row)

    @property
    def merged(self) -> list[Row]:
        """A row for each case."""
        return self.measurement.merge(self.rows)

    def as_json(self) -> dict[str, Any]:
        """Everything, for a program."""
        return {
            "measurement": self.measurement.name,
            "machine": self.machine,
            "complete": self.complete,
            "article": self.measurement.article,
            "rows": self.merged,
            "runs": self.rows,
            "failures": self.failures,
        }

    def save_csv(self, path: Path) -> None:
        """The table, a line for each case.

        Raises:
            LabError: the file cannot be written.
        """
        columns = self.measurement.columns
        try:
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow([column.key for column in columns])
                writer.writerows([[row.get(c.key) for c in columns] for row in self.merged])
        except OSError as error:
            raise LabError(f"{path} cannot be written ({error.strerror}).") from None

    def save_plot(self, path: Path) -> None:
        """The plot, PNG or SVG by the suffix; `tasks.curve.check_target` comes first.

        Raises:
            LabError: the file cannot be written.
        """
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra that not everyone has

        figure = Figure(figsize=(9, 4.5), layout="constrained")
        self.measurement.draw(figure, self.merged)
        said = " · ".join(str(self.machine[key]) for key in ("gpu", "device") if self.machine[key])
        under = f"{said} · {self.machine['cpus']} processors · torch {self.machine['torch']}"
        if not self.complete:
            under += " · stopped early"
        figure.suptitle(f"{self.measurement.title}\n{under}", fontsize=10)
        try:
            figure.savefig(path, dpi=120)
        except OSError as error:
            raise LabError(f"{path} cannot be written ({error.strerror}).") from None
