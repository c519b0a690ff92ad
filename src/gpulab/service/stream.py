"""Events of one check on their way to the client that asked for it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

# Only the latest of these matters; a script that floods its output must not flood the service.
FLEETING = {"line", "look"}
# What a client may see. Everything else, above all `crash`, stays here.
TOLD = {"plan", "started", "line", "look", "check"}

Write = Callable[[bytes], "asyncio.Future[None]"]


class Stream:
    """JSON lines to a client. Of fleeting events, only the latest waits for a slow client.

    `publish` may be called from any thread, the others from the event loop's.
    """

    def __init__(self, write: Write) -> None:
        self._write = write
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._latest: dict[str, Any] | None = None
        self._sent: asyncio.Future[None] | None = None
        self.closed = False

    def send(self, event: str, **values: Any) -> None:
        """Send one event now."""
        if not self.closed:
            self._sent = self._write(json.dumps({"event": event, **values}).encode() + b"\n")
            self._sent.add_done_callback(self._flushed)

    def publish(self, event: dict[str, Any]) -> None:
        """Send an event of the grading process, if a client may see it."""
        if event["event"] not in TOLD:
            return
        if event["event"] not in FLEETING:
            self._loop.call_soon_threadsafe(lambda: self.send(**event))
            return
        with self._lock:
            scheduled, self._latest = self._latest is not None, event
        if not scheduled:
            self._loop.call_soon_threadsafe(self._send_latest)

    def _send_latest(self) -> None:
        if self._sent is not None and not self._sent.done() and not self.closed:
            return  # `_flushed` comes back
        with self._lock:
            event, self._latest = self._latest, None
        if event is not None:
            self.send(**event)

    def _flushed(self, sent: asyncio.Future[None]) -> None:
        if not sent.cancelled():
            sent.exception()  # a client that has gone is noticed elsewhere
        if sent is self._sent:
            self._send_latest()
