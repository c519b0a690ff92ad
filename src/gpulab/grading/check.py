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
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

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

_judges: set[int] = set()  # grading processes that live now, of every thread
_judges_lock = threading.Lock()


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
    path, log = scratch / "order.json", scratch / "judge.log"
    path.write_text(json.dumps(order), encoding="utf-8")
    become_subreaper()
    process, events_fd = _start_judge(path, log)
    results, finished = [], False
    try:
        with os.fdopen(events_fd, "rb") as events:
            for event in _events(events):
                listener(event)
                finished = event["event"] == "done"
                if event["event"] == "check":
                    results.append(wire.check_result(event["result"]))
    finally:
        _end(process)
    if not finished or any(r.rationale and r.rationale.key == "crashed" for r in results):
        # pytest's account of it: for authors, not for attendees
        listener({"event": "crash", "text": log.read_text(encoding="utf-8", errors="replace")})
    return results


def _start_judge(order: Path, log: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start the grading process; returns it and the pipe its events come by."""
    read_fd, write_fd = os.pipe()
    environment = {n: v for n, v in os.environ.items() if not n.startswith("PYTEST")}
    # -P: the folder it is started in may be the attendee's, whose modules it must not import.
    command = [sys.executable, "-P", "-m", "gpulab.grading.judge", str(order), str(write_fd)]
    with _judges_lock, log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            pass_fds=(write_fd,),
            env=environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            start_new_session=True,  # a Ctrl-C in the terminal reaches it through us, once
        )
        _judges.add(process.pid)
    os.close(write_fd)
    return process, read_fd


def _events(pipe: IO[bytes]) -> Iterator[dict[str, Any]]:
    for line in pipe:
        if line.endswith(b"\n"):  # else the grading process was killed while it wrote
            yield json.loads(line)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the life line, give the grading process time to end its attempts, then insist."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with _judges_lock:
        _judges.discard(process.pid)
        end_orphans(spare=_judges)
