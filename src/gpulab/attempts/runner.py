"""Start an attempt, watch it from outside, end everything that it started."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import threading
import time
from collections.abc import Callable

from gpulab.attempts.answer import AnswerPipe
from gpulab.attempts.attempt import Attempt, Ended, Line
from gpulab.attempts.hygiene import GpuMemory
from gpulab.attempts.job import Job
from gpulab.attempts.launch import Launcher, LocalLauncher
from gpulab.model import Device
from gpulab.observe import Gpu, Observer, become_subreaper, end_everything

LOOK_EVERY = 0.05  # seconds between two looks at the process tree

Listener = Callable[[Line | Observer], None]


def run(
    job: Job,
    listener: Listener | None = None,
    stop: threading.Event | None = None,
    launcher: Launcher | None = None,
) -> Attempt:
    """Make the attempt and return what was seen of it.

    Args:
        job: what to do.
        listener: told every line of output as it comes, and the observer after each look.
        stop: set by another thread to end the attempt early.
        launcher: starts it; without one, at the level `local`.

    Raises:
        LabError: the attempt could not be started.
        InterruptedError: `stop` was set.
    """
    become_subreaper()
    watch = _Watch(job, listener or (lambda _: None), launcher or LocalLauncher())
    try:
        watch.until_ended(stop or threading.Event())
    finally:
        watch.close()
    return watch.attempt()


class _Watch:
    def __init__(self, job: Job, listener: Listener, launcher: Launcher) -> None:
        self.job, self.listener = job, listener
        self.ended: Ended | None = None
        self.lines: list[Line] = []
        self.answer = AnswerPipe()
        self.output_bytes = 0
        self.left_running = 0
        self.selector = selectors.DefaultSelector()
        gpu = Gpu() if job.device is Device.CUDA else None
        self.gpu_memory = GpuMemory(gpu) if gpu else None
        self.gpu_left: int | None = None
        self.launched = launcher.launch(job)
        self.started = time.monotonic()
        self.process = self.launched.process
        self.observer = Observer(
            self.process.pid,
            self.launched.sources,
            gpu=gpu,
            inside=self.launched.folder,
            waited=self.launched.waited,
        )
        self.pidfd = os.pidfd_open(self.process.pid)
        self.selector.register(self.pidfd, selectors.EVENT_READ, None)
        outputs = self.launched.outputs
        for name in ("stdout", "stderr"):
            self._read_from(outputs.pop(name), _Lines(name, self._take_line))
        if "answer" in outputs:
            self._read_from(outputs.pop("answer"), self.answer)

    def _read_from(self, fd: int, reader: _Lines | AnswerPipe) -> None:
        os.set_blocking(fd, False)
        self.selector.register(fd, selectors.EVENT_READ, reader)

    @property
    def now(self) -> float:
        return time.monotonic() - self.started

    def until_ended(self, stop: threading.Event) -> None:
        next_look = 0.0
        while self.ended is None:
            if stop.is_set():
                raise InterruptedError("the attempt was stopped")
            for key, _ in self.selector.select(max(0.0, next_look - self.now)):
                if key.fd == self.pidfd:
                    self.ended = Ended.EXIT
                else:
                    self._drain(key)
            if self.now >= next_look and self.ended is None:
                self._look()
                next_look = self.now + LOOK_EVERY
        self.observer.look(self.output_bytes)
        self.left_running = self._count_left()
        self._drain_all()
        if self.ended is Ended.EXIT and self._says_too_much():
            self.ended = Ended.FLOOD
        if self.launched.out_of_memory() and (self.ended is not Ended.EXIT or self._failed()):
            self.ended = Ended.MEMORY

    def _look(self) -> None:
        self.observer.look(self.output_bytes)
        self.listener(self.observer)
        if self.observer.hang is not None:
            self.ended = Ended.HANG
        elif self._over_memory():
            self.ended = Ended.MEMORY
        elif self._says_too_much():
            self.ended = Ended.FLOOD
        elif self.now > self.job.limits.seconds:
            self.ended = Ended.TIME_OUT

    def _says_too_much(self) -> bool:
        limits = self.job.limits
        return (
            self.output_bytes > limits.output_bytes
            or len(self.lines) > limits.lines
            or self.answer.size > limits.answer_bytes
        )

    def _failed(self) -> bool:
        return self.launched.exit_code() != 0

    def _over_memory(self) -> bool:
        limit, latest = self.job.limits.memory, self.observer.latest
        return limit is not None and latest is not None and latest.private > limit

    def _drain(self, key: selectors.SelectorKey) -> bool:
        """Read what is there; False when nothing more will come for now."""
        try:
            data = os.read(key.fd, 1 << 16)
        except BlockingIOError:
            return False
        if not data:
            self.selector.unregister(key.fd)
            if isinstance(key.data, _Lines):
                key.data.flush(self.now)
            os.close(key.fd)
            return False
        if isinstance(key.data, _Lines):
            self.output_bytes += len(data)
            if self.output_bytes <= self.job.limits.output_bytes:
                key.data.feed(data, self.now)
        else:
            self.answer.feed(data, self.now)
        return self.answer.size <= self.job.limits.answer_bytes

    def _count_left(self) -> int:
        """Processes that outlive the main one; multiprocessing's own helpers end by themselves."""
        live = self.observer.live() - {self.process.pid}
        helpers = {p.pid for p in self.observer.evidence().processes if p.role == "helper"}
        return len(live - helpers)

    def _drain_all(self) -> None:
        for key in list(self.selector.get_map().values()):
            # A process left behind may write for ever: its pipes get a second, no more.
            deadline = self.now + 1.0
            while key.fd != self.pidfd and self.now < deadline and self._drain(key):
                pass
            if isinstance(key.data, _Lines):
                key.data.flush(self.now)

    def _take_line(self, line: Line) -> None:
        if len(self.lines) > self.job.limits.lines:
            return
        self.lines.append(line)
        self.listener(line)

    def attempt(self) -> Attempt:
        if self.ended is None:
            raise RuntimeError("asked for the result of an attempt that has not ended")
        exit_code = self.launched.exit_code() if self.ended is Ended.EXIT else None
        return Attempt(
            ended=self.ended,
            exit_code=exit_code,
            lines=tuple(self.lines),
            evidence=self.observer.evidence(),
            hang=self.observer.hang,
            left_running=self.left_running,
            gpu_others=self.gpu_memory.others if self.gpu_memory else None,
            gpu_left=self.gpu_left,
            **self.answer.read(),
        )

    def close(self) -> None:
        """End the whole tree, reap it, close every pipe. Safe to call at any moment."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        end_everything(self.observer)
        self.process.wait()
        if self.gpu_memory:
            pids = {process.pid for process in self.observer.evidence().processes}
            self.gpu_left = self.gpu_memory.left_by(pids)
        for key in list(self.selector.get_map().values()):
            os.close(key.fd)
        self.selector.close()
        self.launched.close()


class _Lines:
    """Cuts a stream of bytes into lines."""

    def __init__(self, stream: str, take: Callable[[Line], None]) -> None:
        self.stream, self.take = stream, take
        self.rest = b""

    def feed(self, data: bytes, at: float) -> None:
        *whole, self.rest = (self.rest + data).split(b"\n")
        for line in whole:
            self.take(Line(at, self.stream, line.decode("utf-8", "replace").rstrip("\r")))

    def flush(self, at: float) -> None:
        if self.rest:
            self.feed(b"\n", at)
