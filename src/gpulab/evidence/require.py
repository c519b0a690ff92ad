"""Judgements that every exercise needs: did the attempt come to a proper end, did it answer?"""

from __future__ import annotations

import re
from typing import Any

from gpulab.attempts import Attempt, Ended
from gpulab.evidence.report import CannotDecide, Said, fail
from gpulab.observe import Frame, Hang, WaitingProcess

REFUSAL = re.compile(r"rehearsal device: .*")


def require_finished(attempt: Attempt) -> None:
    """Fail the check, in words of the lab, unless the attempt ended by itself and well."""
    if attempt.ended is Ended.HANG:
        _fail_hang(attempt)
    seconds = round(attempt.evidence.wall, 1)
    if attempt.ended is Ended.TIME_OUT:
        fail("time_out", seconds=seconds, last=_last_line(attempt))
    if attempt.ended is Ended.MEMORY:
        peak = max((sample.private for sample in attempt.evidence.memory), default=0)
        fail("memory", mib=peak >> 20, seconds=seconds)
    if attempt.ended is Ended.FLOOD:
        fail("flood")
    _refuse_rehearsal(attempt)
    if attempt.error is not None:
        _fail_error(attempt)
    if attempt.exit_code:
        fail("crash", code=attempt.exit_code, last=_last_line(attempt, "stderr"))


def require_answer(attempt: Attempt) -> Any:
    """The answer of an attempt that finished; fails the check where there is none."""
    require_finished(attempt)
    if attempt.broken_answer is not None:
        fail("broken_answer", why=attempt.broken_answer)
    if not attempt.answered:
        fail("silent")
    return attempt.answer


def _last_line(attempt: Attempt, stream: str | None = None) -> str:
    lines = [line.text for line in attempt.lines if stream in (None, line.stream)]
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "-")


def _refuse_rehearsal(attempt: Attempt) -> None:
    said = attempt.error.message if attempt.error else _last_line(attempt, "stderr")
    failed = attempt.error is not None or bool(attempt.exit_code)
    if failed and (match := REFUSAL.search(said)):
        raise CannotDecide(Said("rehearsal_refused", {"what": match[0]}))


def _fail_error(attempt: Attempt) -> None:
    error = attempt.error
    if error is None:
        return
    said = f"{error.type}: {error.message}".strip().splitlines()
    where = f"{error.file}:{error.line} `{error.source}`" if error.file else "-"
    fail("exception", what=said[0][:300], where=where)


def _fail_hang(attempt: Attempt) -> None:
    hang = attempt.hang
    if hang is None:
        raise RuntimeError("an attempt ended by a hang has no hang")
    waiting = [_describe(process) for process in hang.waiting]
    key = "hang" if hang.kind == "proof" else "stillness"
    fail(key, still=round(hang.at - hang.last_sign_of_life, 1), waiting="; ".join(waiting) or "-")


def _describe(process: WaitingProcess) -> str:
    frame = _own_frame(process)
    who = f"{process.role} process {process.pid}"
    if frame is None:
        return f"{who} waits for {process.waits_for}"
    source = f" `{frame.source}`" if frame.source else ""
    return f"{who} waits at {frame.file}:{frame.line}{source} for {process.waits_for}"


def _own_frame(process: WaitingProcess) -> Frame | None:
    frames = [frame for thread in process.threads for frame in thread.frames[:1]]
    return frames[0] if frames else None


def first_frames(hang: Hang) -> list[str]:
    """One line a waiting process, for the evidence."""
    return [_describe(process) for process in hang.waiting]
