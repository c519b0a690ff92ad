"""Who judges and keeps the record: this process on its own checkout, or the seat's grader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from gpulab import wire
from gpulab.catalogue import Exercise, load_checks
from gpulab.catalogue.texts import LANGUAGES
from gpulab.model import Device, Grade, LabError, Languages, Message, Verdict
from gpulab.service import upload
from gpulab.service.client import DEFAULT_SOCKET, Client, find_socket
from gpulab.snapshot import read_files

Listener = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Judged:
    """A verdict; the debrief, where it is `fixed`; why it was not recorded, if it was not."""

    grade: Grade
    debrief: Languages = field(default_factory=dict)
    unrecorded: str | None = None


@dataclass(frozen=True)
class Progress:
    """By exercise: best verdict, number of checks, highest hint taken."""

    best: dict[str, Verdict]
    checks: dict[str, int]
    hints: dict[str, int]


class Grader(Protocol):
    """Judges work and keeps the attendee's record. Every method may raise LabError."""

    def check(
        self, exercise: Exercise, work: Path, device: Device | None, listener: Listener
    ) -> Judged:
        """Judge a work folder and record the verdict; `listener` is told every event."""

    def progress(self) -> Progress:
        """How far the attendee is."""

    def grades(self) -> list[dict[str, Any]]:
        """Every verdict as JSON, oldest first."""

    def take_hint(self, exercise: str, number: int) -> None:
        """Record that a hint was shown."""


class LocalGrader:
    """Level `local`: the checks of the checkout, the record in the work folder."""

    def __init__(self, root: Path, record: Path) -> None:
        from gpulab.grading import Records  # noqa: PLC0415 - takes long, and a seat needs none of it

        self._root, self._records = root, Records(record)

    def check(
        self, exercise: Exercise, work: Path, device: Device | None, listener: Listener
    ) -> Judged:
        """See `Grader`."""
        from gpulab import grading  # noqa: PLC0415 - as above

        grade = grading.check(grading.Request(self._root, exercise, work, device), listener)
        unrecorded = None
        try:
            self._records.add(grade)
        except LabError as error:
            unrecorded = str(error)
        debrief = {}
        if grade.verdict is Verdict.FIXED:
            checks = load_checks(self._root, exercise)
            debrief = {language: checks.debrief(language) for language in LANGUAGES}
        return Judged(grade, debrief, unrecorded)

    def progress(self) -> Progress:
        """See `Grader`."""
        records = self._records
        return Progress(records.best(), records.counts(), records.hints_taken())

    def grades(self) -> list[dict[str, Any]]:
        """See `Grader`."""
        return [wire.to_json(grade) for grade in self._records.grades()]

    def take_hint(self, exercise: str, number: int) -> None:
        """See `Grader`."""
        self._records.take_hint(exercise, number)


class SeatGrader:
    """The service behind the seat's socket, which has the checks and the record."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def check(
        self, exercise: Exercise, work: Path, device: Device | None, listener: Listener
    ) -> Judged:
        """See `Grader`."""
        started = datetime.now(UTC)
        level = "isolated"

        def hear(event: dict[str, Any]) -> None:
            nonlocal level
            level = event.get("level", level)
            listener(event)

        asked = upload.pack(exercise.name, device and device.value, read_files(work))
        last = self._client.check(asked, hear)
        if last["event"] == "grade":
            unrecorded = None if last["recorded"] else "Tell your trainer."
            return Judged(wire.grade(last["grade"]), last["debrief"], unrecorded)
        grade = Grade(
            exercise=exercise.name,
            verdict=Verdict.UNDECIDED,
            checks=(),
            hardware=None,
            submission="",
            started=started.isoformat(timespec="seconds"),
            seconds=round((datetime.now(UTC) - started).total_seconds(), 3),
            reason=Message(**last["reason"]),
            level=level,
        )
        return Judged(grade)

    def progress(self) -> Progress:
        """See `Grader`."""
        said = self._client.get("/progress")
        best = {name: Verdict(verdict) for name, verdict in said["best"].items()}
        return Progress(best, said["checks"], said["hints"])

    def grades(self) -> list[dict[str, Any]]:
        """See `Grader`."""
        grades: list[dict[str, Any]] = self._client.get("/grades")
        return grades

    def take_hint(self, exercise: str, number: int) -> None:
        """See `Grader`."""
        self._client.note_hint(exercise, number)


def choose(root: Path, record: Path) -> Grader:
    """The seat's grader where there is a socket, else this process.

    Raises:
        LabError: no socket, and no checks here either.
    """
    if (socket := find_socket()) is not None:
        return SeatGrader(Client(socket))
    if (root / "checks").is_dir():
        return LocalGrader(root, record)
    raise LabError(
        f"The grader cannot be reached: there is no socket {DEFAULT_SOCKET}; tell your trainer.",
        code=4,
    )
