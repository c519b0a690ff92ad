"""One check run: snapshot, grading process, verdict."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpulab.attempts.job import REHEARSAL_BYTES
from gpulab.catalogue import CheckFile, load_checks
from gpulab.catalogue.exercises import Exercise
from gpulab.catalogue.variants import lay_out
from gpulab.evidence.words import lab_message
from gpulab.grading.judges import Findings, Judge, Listener, Setup
from gpulab.model import Device, Grade, LabError, Message, Outcome, Verdict
from gpulab.snapshot import Snapshot, take_snapshot


@dataclass(frozen=True)
class Request:
    """What is to be judged, and on what.

    Attributes:
        root: the folder with `exercises/` and `checks/`.
        device: what stands behind `cuda`; None for a GPU where there is one, else what the
            exercise needs.
        device_bytes: memory of the rehearsal device.
        isolation: the sandbox's configuration; None judges at level `local`.
        warm: use attempts that have torch imported already, where the exercise allows it.
    """

    root: Path
    exercise: Exercise
    work: Path
    device: Device | None = None
    device_bytes: int = REHEARSAL_BYTES
    seed: int | None = None
    isolation: Path | None = None
    warm: bool = False


def check(
    request: Request, listener: Listener = lambda _: None, judge: Judge | None = None
) -> Grade:
    """Judge a work folder.

    Args:
        request: what is to be judged.
        listener: told each event of the grading process as it comes.
        judge: a grading process that was started for this; None starts one. It is ended.

    Raises:
        LabError: the work folder cannot be read, or the lab failed.
        KeyboardInterrupt: everything that was started has been ended.
    """
    run = _Run(request, judge)
    try:
        with scratch_folder() as scratch:
            return run.judge(scratch, listener)
    finally:
        run.close()


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A private temporary folder, removed afterwards whatever was done to it.

    Raises:
        LabError: it cannot be made.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="gpulab-"))
    except OSError as error:
        raise LabError(
            f"No temporary folder can be made ({error}); free some space.", code=4
        ) from None
    try:
        yield folder
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a folder, those of its folders included whose permissions an attempt took away."""
    for parent, folders, _ in os.walk(folder):
        for name in folders:
            with contextlib.suppress(OSError):
                Path(parent, name).chmod(0o700, follow_symlinks=False)
    shutil.rmtree(folder, ignore_errors=True)


class _Run:
    """The state of one check run, from the snapshot to the grade."""

    def __init__(self, request: Request, judge: Judge | None) -> None:
        self.request = request
        self.asked = judge
        self.started = datetime.now(UTC)
        self.clock = time.monotonic()
        self.seed = secrets.randbits(63) if request.seed is None else request.seed
        self.submission = ""
        self.findings = Findings()

    def judge(self, scratch: Path, listener: Listener) -> Grade:
        request, exercise = self.request, self.request.exercise
        checks = load_checks(request.root, exercise)
        snapshot = take_snapshot(request.work, scratch / exercise.name)
        self.submission = snapshot.sha256
        script = snapshot.folder / exercise.facts.script
        if (reason := _unusable(exercise, script)) is not None:
            return self.grade(Verdict.NOT_FIXED, reason)
        order = self._order(checks, snapshot, scratch)
        if self.asked is None:
            self.asked = Judge(Setup(request.isolation, request.warm))
        self.findings = self.asked.ask(order, listener)
        return self._verdict(checks)

    def close(self) -> None:
        """End the grading process, asked or not."""
        if self.asked is not None:
            self.asked.close()

    def _order(self, checks: CheckFile, snapshot: Snapshot, scratch: Path) -> dict[str, Any]:
        request = self.request
        trusted = lay_out(request.exercise, scratch / "trusted" / "work", checks.reference)
        return {
            "root": str(request.root),
            "exercise": request.exercise.name,
            "submission": str(snapshot.folder),
            "trusted": str(trusted),
            "scratch": str(scratch),
            "device": request.device and request.device.value,
            "device_bytes": request.device_bytes,
            "seed": self.seed,
        }

    def _verdict(self, checks: CheckFile) -> Grade:
        if self.findings.verdict is not None:
            return self.grade(self.findings.verdict, self.findings.reason)
        outcomes = {result.outcome for result in self.findings.results}
        if Outcome.FAILED in outcomes:
            return self.grade(Verdict.NOT_FIXED)
        if {result.name for result in self.findings.results} != checks.titles.keys():
            return self.grade(Verdict.UNDECIDED, lab_message("judge_died"))
        if Outcome.UNDECIDED in outcomes or Outcome.PASSED not in outcomes:
            return self.grade(Verdict.UNDECIDED)
        return self.grade(Verdict.FIXED)

    def grade(self, verdict: Verdict, reason: Message | None = None) -> Grade:
        return Grade(
            exercise=self.request.exercise.name,
            verdict=verdict,
            checks=tuple(self.findings.results),
            hardware=self.findings.hardware,
            submission=self.submission,
            started=self.started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - self.clock, 3),
            reason=reason,
            seed=self.seed,
            level="isolated" if self.request.isolation else "local",
        )


def _unusable(exercise: Exercise, script: Path) -> Message | None:
    values = {"script": exercise.facts.script, "exercise": exercise.name}
    if not script.is_file():
        return lab_message("missing", **values)
    if not script.read_bytes().strip():
        return lab_message("empty", **values)
    return None
