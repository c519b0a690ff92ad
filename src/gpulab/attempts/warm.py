"""Attempts that begin at once, in processes that were started beforehand, each used once."""

from __future__ import annotations

import contextlib
from collections import defaultdict, deque
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from threading import Lock
from typing import Self

from gpulab.attempts.job import Job, Setting
from gpulab.attempts.launch import WARM, Launched, Launcher, Prepared
from gpulab.model import LabError


class WarmPool:
    """A launcher that keeps processes waiting for jobs, and starts another for each it uses.

    Where modules are imported beforehand, a job that must be cold, or whose folder would have come
    before one of them, is left to the launcher. So is the first job of a setting that nobody
    expected.

    Args:
        launcher: starts the processes, and what the pool leaves to it.
        expected: settings to be ready for from the beginning.
        modules: what the processes import while they wait.
        spares: how many processes wait for jobs of one setting.
    """

    def __init__(
        self,
        launcher: Launcher,
        *expected: Setting,
        modules: tuple[str, ...] = WARM,
        spares: int = 1,
    ) -> None:
        self.level = launcher.level
        self._launcher = launcher
        self._modules = modules
        self._spares = spares
        self._waiting: defaultdict[Setting, deque[Future[Prepared]]] = defaultdict(deque)
        self._lock = Lock()
        self._starting: Prepared | None = None
        self._closed = False
        # One thread for the pool's whole life: a sandbox ends with the thread that started it.
        self._refill = ThreadPoolExecutor(1, "warm attempts")
        for setting in expected:
            self._order(setting)

    def launch(self, job: Job) -> Launched:
        """Start the job; see `Launcher`."""
        if job.cold and self._modules:
            return self._launcher.launch(job)
        with self._lock:
            waiting = self._waiting[job.setting]
            spare = waiting.popleft() if waiting else None
        self._order(job.setting)
        if spare is not None:
            with contextlib.suppress(LabError):  # lost, or never ready: a fresh one will tell why
                return self._use(spare.result(), job)
        return self._launcher.launch(job)

    def prepare(self, setting: Setting, modules: tuple[str, ...] = WARM) -> Prepared:
        """Start a process that waits, apart from the pool's own."""
        return self._launcher.prepare(setting, modules)

    def wait(self) -> None:
        """Wait until every process that was ordered waits for its job, or has failed."""
        with self._lock:
            ordered = [spare for spares in self._waiting.values() for spare in spares]
        for spare in ordered:
            with contextlib.suppress(CancelledError):  # closed meanwhile
                spare.exception()

    def close(self) -> None:
        """End the processes that wait. Attempts that run must have ended."""
        with self._lock:
            self._closed = True
            if self._starting is not None:
                self._starting.kill()
        for spares in self._waiting.values():
            for spare in spares:
                if not spare.cancel() and spare.exception() is None:
                    spare.result().close()
        self._waiting.clear()
        self._refill.shutdown()  # last: with its thread, what it started in a sandbox ends hard

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _use(self, spare: Prepared, job: Job) -> Launched:
        if not self._modules or spare.suits(job):
            return spare.deliver(job)
        spare.close()
        return self._launcher.launch(job)

    def _prepare(self, setting: Setting) -> Prepared:
        spare = self._launcher.prepare(setting, self._modules)
        with self._lock:
            self._starting = spare
            if self._closed:
                spare.kill()
        try:
            spare.become_ready()
        finally:
            with self._lock:
                self._starting = None
        return spare

    def _order(self, setting: Setting) -> None:
        with self._lock, contextlib.suppress(RuntimeError):  # closed meanwhile
            while len(self._waiting[setting]) < self._spares:
                self._waiting[setting].append(self._refill.submit(self._prepare, setting))
