"""The seat's side of the service: HTTP over the seat's Unix socket, standard library only."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

from gpulab import wire
from gpulab.model import LabError, Message

DEFAULT_SOCKET = Path("/run/gpulab/grader.sock")
ANSWER_WITHIN = 30.0  # seconds, for everything but a check

STOPPED = Message(
    "grader_stopped",
    {
        "en": "The grader stopped before its verdict; nothing is lost, run the check again.",
        "zh": "评分服务在给出结论之前停止了；什么都没有丢失，请再检查一次。",  # noqa: RUF001 - Chinese
    },
)

Listener = Callable[[dict[str, Any]], None]


def find_socket() -> Path | None:
    """The socket that GPULAB_GRADER names, else the usual one if it is there."""
    if configured := os.environ.get("GPULAB_GRADER"):
        return Path(configured)
    return DEFAULT_SOCKET if DEFAULT_SOCKET.exists() else None


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float | None) -> None:
        super().__init__("grader", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class _LostError(LabError):
    """The service has gone after it was asked."""


class Client:
    """Asks the service behind one socket.

    Every method raises LabError: code 4 where the service cannot be reached or fails, 1 where it
    refuses what was asked.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, what: str) -> Any:
        """The answer to `GET what`."""
        with self._asked("GET", what, None, ANSWER_WITHIN) as answer:
            return json.loads(answer.read())

    def note_hint(self, exercise: str, number: int) -> None:
        """Have it recorded that a hint was shown."""
        body = json.dumps({"exercise": exercise, "number": number}).encode()
        with self._asked("POST", "/hints", body, ANSWER_WITHIN) as answer:
            answer.read()

    def check(self, upload: bytes, listener: Listener) -> dict[str, Any]:
        """Have an upload judged; `listener` is told each event as it comes.

        Returns the last event, `grade` or `stopped`; `stopped`, too, where the service ended
        before its verdict.
        """
        last: dict[str, Any] = {"event": "none"}
        with contextlib.suppress(_LostError), self._asked("POST", "/check", upload, None) as answer:
            for event in _events(answer):
                listener(event)
                last = event
        if last["event"] == "failed":
            raise LabError(last["text"], code=4)
        if last["event"] in {"grade", "stopped"}:
            return last
        return {"event": "stopped", "reason": wire.to_json(STOPPED)}

    @contextlib.contextmanager
    def _asked(
        self, method: str, path: str, body: bytes | None, timeout: float | None
    ) -> Iterator[http.client.HTTPResponse]:
        with contextlib.closing(_Connection(self._path, timeout)) as connection:
            try:
                connection.connect()
            except OSError as error:
                raise self._unreachable(str(error)) from None
            try:
                connection.request(method, path, body)
                answer = connection.getresponse()
                if answer.status != HTTPStatus.OK:
                    raise _refusal(answer.status, answer.read())
                yield answer
            except (ConnectionError, http.client.IncompleteRead):
                lost = self._unreachable("it closed the connection")
                raise _LostError(str(lost), code=lost.code) from None
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise self._unreachable(str(error) or type(error).__name__) from None

    def _unreachable(self, why: str) -> LabError:
        return LabError(
            f"The grader cannot be reached at {self._path} ({why}); tell your trainer.", code=4
        )


def _events(answer: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    for line in answer:
        if line.endswith(b"\n"):  # else the service was killed while it wrote
            yield json.loads(line)


def _refusal(status: int, body: bytes) -> LabError:
    try:
        sentence = str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        sentence = f"The grader refused with status {status}; tell your trainer."
    return LabError(sentence, code=4 if status >= HTTPStatus.INTERNAL_SERVER_ERROR else 1)
