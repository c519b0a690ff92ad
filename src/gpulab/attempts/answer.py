"""What came over an attempt's answer pipe: marks, and one answer or one exception."""

from __future__ import annotations

import bisect
from typing import Any

from gpulab.attempts import messages
from gpulab.attempts.attempt import Failure

SAME_MOMENT = 0.001  # seconds; bytes may come one by one


class AnswerPipe:
    """Collects the bytes and remembers when they came."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._ends: list[int] = []
        self._times: list[float] = []

    @property
    def size(self) -> int:
        """Bytes so far."""
        return len(self._data)

    def feed(self, data: bytes, at: float) -> None:
        """Take bytes that arrived `at` seconds after the start."""
        self._data += data
        if self._times and at - self._times[-1] < SAME_MOMENT:
            self._ends[-1] = len(self._data)
        else:
            self._ends.append(len(self._data))
            self._times.append(at)

    def read(self) -> dict[str, Any]:
        """The fields of an `Attempt` that the pipe decides."""
        try:
            said = messages.unpack_all(bytes(self._data))
        except messages.ProtocolError as error:
            return {"broken_answer": str(error)}
        answers = [message for _, message in said if message.keys() & {"value", "error"}]
        found: dict[str, Any] = {"marks": self._marks(said)}
        if len(answers) > 1:
            return found | {"broken_answer": f"it answered {len(answers)} times"}
        for message in answers:
            if "value" in message:
                found |= {"answer": message["value"], "answered": True}
            else:
                found["error"] = _failure(message["error"])
        return found

    def _marks(self, said: list[tuple[int, dict[str, Any]]]) -> tuple[tuple[float, str], ...]:
        return tuple(
            (self._times[bisect.bisect_left(self._ends, end)], str(message["mark"]))
            for end, message in said
            if "mark" in message
        )


def _failure(error: Any) -> Failure:
    known = error if isinstance(error, dict) else {}
    line = known.get("line")
    return Failure(
        type=str(known.get("type", "Exception"))[:200],
        message=str(known.get("message", ""))[:2000],
        file=str(known["file"])[:300] if "file" in known else None,
        line=line if isinstance(line, int) else None,
        source=str(known["source"])[:200] if "source" in known else None,
    )
