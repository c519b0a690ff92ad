"""Judgements that every exercise needs: did the attempt come to a proper end, did it answer?"""

from __future__ import annotations

import re
from typing import Any

from gpulab.attempts import Attempt, Ended
from gpulab.evidence.report import CannotDecide, Said, fail
from gpulab.observe import Hang, WaitingProcess

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
    said = attempt.error.message if attempt.error else attempt.output("stderr")
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
    key = "hang" if hang.kind == "proof" else "stillness"
    still = round(hang.at - hang.last_sign_of_life, 1)
    fail(key, still=still, waiting="; ".join(who_waits(hang)) or "-")


def who_waits(hang: Hang) -> list[str]:
    """One phrase for all processes that wait in the same line for the same thing."""
    alike: dict[tuple[str, str], list[int]] = {}
    for process in hang.waiting:
        alike.setdefault((process.role, _where(process)), []).append(process.pid)
    return [
        f"{role} process{'es' if len(pids) > 1 else ''} {', '.join(map(str, pids))} {where}"
        for (role, where), pids in alike.items()
    ]


def _where(process: WaitingProcess) -> str:
    """Its innermost line in the work folder, the main thread's if that has one."""
    frames = [frame for thread in process.threads for frame in thread.frames if frame.source]
    if not frames:
        return f"waiting for {process.waits_for}"
    frame = frames[0]
    return f"at {frame.file}:{frame.line} `{frame.source}`, waiting for {process.waits_for}"
