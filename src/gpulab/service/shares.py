"""One GPU share at work: its queue, its grading processes, the check that runs."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpulab import grading
from gpulab.grading import Request
from gpulab.grading.judges import Judge, Setup
from gpulab.model import Grade
from gpulab.service import config, log
from gpulab.service.queue import FairQueue
from gpulab.service.spares import Spare

Listener = Callable[[dict[str, Any]], None]


class CheckStoppedError(Exception):
    """The check was ended before its verdict: its client has gone, or its time was up."""


class Share:
    """Judges one request at a time."""

    def __init__(self, share: config.Share, seconds: float) -> None:
        isolation = Path(share.isolation) if share.isolation else None
        self.setup = Setup(isolation, share.warm, share.devices)
        self.queue = FairQueue()
        self.spare = Spare(self.setup)
        self._seconds = seconds

    async def refill(self) -> None:
        """Make a grading process ready, unless a check runs or waits."""
        if not self.queue:
            await asyncio.to_thread(self.spare.refill)

    async def judge(self, request: Request, listener: Listener) -> Grade:
        """Judge a request, whose turn it must be; cancelling it ends all that it started.

        Raises:
            CheckStoppedError: it took longer than the service allows.
            LabError: the lab failed.
        """
        run = _Run(replace(request, isolation=self.setup.isolation, warm=self.setup.warm), listener)
        thread = asyncio.get_running_loop().run_in_executor(
            None, functools.partial(run.judge, self.spare)
        )
        try:
            return await asyncio.wait_for(asyncio.shield(thread), self._seconds)
        except TimeoutError:
            await _end(run, thread)
            raise CheckStoppedError(f"it took more than {self._seconds:g} s") from None
        except asyncio.CancelledError:
            await asyncio.shield(_end(run, thread))
            raise


async def _end(run: _Run, thread: asyncio.Future[Grade]) -> None:
    await asyncio.to_thread(run.stop)
    await asyncio.wait([thread])
    if not thread.cancelled():
        thread.exception()  # seen: whatever it says, the check was stopped


class _Run:
    """One check run in a thread, which another thread may stop."""

    def __init__(self, request: Request, listener: Listener) -> None:
        self._request, self._listener = request, listener
        self._lock = threading.Lock()
        self._judge: Judge | None = None
        self._stopped = False

    def judge(self, spare: Spare) -> Grade:
        begun, ready = time.monotonic(), spare.ready
        judge = spare.take()
        with self._lock:
            self._judge, stopped = judge, self._stopped
        if stopped:
            judge.close()
            raise CheckStoppedError("it was stopped before it began")
        log.debug("judging", ready=ready, taken_s=round(time.monotonic() - begun, 3))
        return grading.check(self._request, self._hear, judge)

    def _hear(self, event: dict[str, Any]) -> None:
        if not self._stopped:  # what a stopped one says of its end concerns nobody
            self._listener(event)

    def stop(self) -> None:
        with self._lock:
            self._stopped, judge = True, self._judge
        if judge is not None:
            judge.end()
