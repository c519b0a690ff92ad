"""One check run: snapshot, grading process, verdict."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpulab.attempts import Snapshot, take_snapshot
from gpulab.attempts.job import REHEARSAL_BYTES
from gpulab.catalogue import CheckFile, load_checks
from gpulab.catalogue.exercises import Exercise
from gpulab.catalogue.variants import lay_out
from gpulab.evidence.report import CannotDecide
from gpulab.evidence.words import lab_message, message
from gpulab.grading import machine, wire
from gpulab.model import CheckResult, Device, Grade, Hardware, LabError, Message, Outcome, Verdict
from gpulab.observe import Gpu, become_subreaper, end_orphans

Listener = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Request:
    """What is to be judged, and on what."""

    root: Path
    exercise: Exercise
    work: Path
    device: Device | None = None  # None: a GPU where there is one, else what the exercise needs
    device_bytes: int = REHEARSAL_BYTES
    seed: int | None = None


def check(request: Request, listener: Listener = lambda _: None) -> Grade:
    """Judge a work folder.

    Args:
        request: what is to be judged.
        listener: told each event of the grading process as it comes.

    Raises:
        LabError: the work folder cannot be read, or the lab failed.
        KeyboardInterrupt: everything that was started has been ended.
    """
    run = _Run(request)
    with scratch_folder() as scratch:
        try:
            return run.judge(scratch, listener)
        except CannotDecide as undecided:
            return run.grade(Verdict.UNDECIDED, reason=message(undecided.said, {}))


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

    def __init__(self, request: Request) -> None:
        self.request = request
        self.started = datetime.now(UTC)
        self.clock = time.monotonic()
        self.seed = secrets.randbits(63) if request.seed is None else request.seed
        self.submission = ""
        self.hardware: Hardware | None = None

    def judge(self, scratch: Path, listener: Listener) -> Grade:
        request, exercise = self.request, self.request.exercise
        checks = load_checks(request.root, exercise)
        snapshot = take_snapshot(request.work, scratch / exercise.name)
        self.submission = snapshot.sha256
        script = snapshot.folder / exercise.facts.script
        if (reason := _unusable(exercise, script)) is not None:
            return self.grade(Verdict.NOT_FIXED, reason=reason)
        python, gpu = machine.attempt_python(), Gpu()
        facts = machine.look_at_python(python, script)
        if facts.syntax is not None:
            reason = lab_message("syntax", script=script.name, what=facts.syntax)
            return self.grade(Verdict.NOT_FIXED, reason=reason)
        machine.check_torch(exercise, python, facts)
        device = machine.choose_device(exercise, request.device, python, gpu)
        self.hardware = machine.hardware(request.root, device, facts, gpu)
        order = self._order(checks, snapshot, scratch, python, device)
        return self._verdict(_ask_judge(order, scratch, listener), checks)

    def _order(
        self, checks: CheckFile, snapshot: Snapshot, scratch: Path, python: Path, device: Device
    ) -> dict[str, Any]:
        trusted = lay_out(self.request.exercise, scratch / "trusted" / "work", checks.reference)
        return {
            "root": str(self.request.root),
            "exercise": self.request.exercise.name,
            "submission": str(snapshot.folder),
            "trusted": str(trusted),
            "scratch": str(scratch),
            "python": str(python),
            "device": device.value,
            "device_bytes": self.request.device_bytes,
            "seed": self.seed,
        }

    def _verdict(self, results: list[CheckResult], checks: CheckFile) -> Grade:
        outcomes = {result.outcome for result in results}
        if Outcome.FAILED in outcomes:
            return self.grade(Verdict.NOT_FIXED, results)
        if {result.name for result in results} != checks.titles.keys():
            return self.grade(Verdict.UNDECIDED, results, lab_message("judge_died"))
        if Outcome.UNDECIDED in outcomes or Outcome.PASSED not in outcomes:
            return self.grade(Verdict.UNDECIDED, results)
        return self.grade(Verdict.FIXED, results)

    def grade(
        self,
        verdict: Verdict,
        results: list[CheckResult] | None = None,
        reason: Message | None = None,
    ) -> Grade:
        return Grade(
            exercise=self.request.exercise.name,
            verdict=verdict,
            checks=tuple(results or ()),
            hardware=self.hardware,
            submission=self.submission,
            started=self.started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - self.clock, 3),
            reason=reason,
            seed=self.seed,
        )


def _unusable(exercise: Exercise, script: Path) -> Message | None:
    values = {"script": exercise.facts.script, "exercise": exercise.name}
    if not script.is_file():
        return lab_message("missing", **values)
    if not script.read_bytes().strip():
        return lab_message("empty", **values)
    return None


def _ask_judge(order: dict[str, Any], scratch: Path, listener: Listener) -> list[CheckResult]:
    """Run the grading process to its end and return what it judged."""
    path = scratch / "order.json"
    path.write_text(json.dumps(order), encoding="utf-8")
    become_subreaper()
    read_fd, write_fd = os.pipe()
    log = (scratch / "judge.log").open("wb")
    environment = {n: v for n, v in os.environ.items() if not n.startswith("PYTEST")}
    process = subprocess.Popen(
        [sys.executable, "-m", "gpulab.grading.judge", str(path), str(write_fd)],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        pass_fds=(write_fd,),
        env=environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        start_new_session=True,  # a Ctrl-C in the terminal reaches it through us, once
    )
    os.close(write_fd)
    try:
        results = [r for line in os.fdopen(read_fd, "rb") if (r := _event(line, listener))]
        process.wait()
    finally:
        _end(process)
        log.close()
    _tell_crash(scratch / "judge.log", results, listener)
    return results


def _event(line: bytes, listener: Listener) -> CheckResult | None:
    event = json.loads(line)
    listener(event)
    return wire.check_result(event["result"]) if event["event"] == "check" else None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the life line, give the grading process time to end its attempts, then insist."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
    end_orphans()


def _tell_crash(log: Path, results: list[CheckResult], listener: Listener) -> None:
    """Where a check crashed, pass on pytest's account of it: for authors, not for attendees."""
    crashed = any(r.rationale is not None and r.rationale.key == "crashed" for r in results)
    if crashed or not results:
        listener({"event": "crash", "text": log.read_text(encoding="utf-8", errors="replace")})
