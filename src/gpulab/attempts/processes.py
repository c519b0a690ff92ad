"""Starting processes with pipes of their own."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, Self

from gpulab.model import LabError

FILE_BYTES = 4 << 30  # the largest file that an attempt may write


class Pipes:
    """The pipes from an attempt. Leaving the context closes what nobody has taken."""

    def __init__(self, *, answer: bool) -> None:
        self._read: dict[str, int] = {}
        self.write: dict[str, int] = {}
        for name in ("stdout", "stderr", *(["answer"] if answer else [])):
            self._read[name], self.write[name] = os.pipe()

    def take(self) -> dict[str, int]:
        """The ends to read from, now the caller's."""
        taken, self._read = self._read, {}
        return taken

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in (*self._read.values(), *self.write.values()):
            os.close(fd)


class Process(Protocol):
    """A child of this process, with the part of `subprocess.Popen` that is needed of it."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def poll(self) -> int | None:
        """Its exit code, None while it lives; a signal's number is negative."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return the exit code; subprocess.TimeoutExpired where it lives."""

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""

    def kill(self) -> None:
        """Send SIGKILL, unless it has ended."""


class Adopted:
    """A `Process` that another one started for us, and that is our child now."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._pidfd = os.pidfd_open(pid)
        self._exit_code: int | None = None
        self._lock = threading.Lock()

    @property
    def pid(self) -> int:
        """See `Process`."""
        return self._pid

    def poll(self) -> int | None:
        """See `Process`."""
        with self._lock:
            if self._exit_code is None:
                try:
                    pid, status = os.waitpid(self._pid, os.WNOHANG)
                except ChildProcessError:  # ended and reaped as what an attempt had left behind
                    pid, status = self._pid, signal.SIGKILL
                if pid:
                    self._exit_code = os.waitstatus_to_exitcode(status)
                    os.close(self._pidfd)
            return self._exit_code

    def wait(self, timeout: float | None = None) -> int:
        """See `Process`."""
        while (code := self.poll()) is None:
            ended, _, _ = select.select([self._pidfd], [], [], timeout)
            if not ended:
                raise subprocess.TimeoutExpired(str(self._pid), timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """See `Process`."""
        if self.poll() is None:
            os.kill(self._pid, number)

    def kill(self) -> None:
        """See `Process`."""
        self.send_signal(signal.SIGKILL)


def start(
    command: list[str],
    pipes: Pipes,
    inherited: Iterable[int],
    environment: dict[str, str],
    folder: Path,
    *,
    session: bool = True,
) -> subprocess.Popen[bytes]:
    """Start a process with nothing but these pipes and descriptors.

    Raises:
        LabError: it cannot be started.
    """
    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=pipes.write["stdout"],
            stderr=pipes.write["stderr"],
            pass_fds=tuple(inherited),
            start_new_session=session,
        )
    except OSError as error:
        raise LabError(f"{command[0]} cannot be started ({error.strerror}).", code=4) from None


def limit(pid: int) -> None:
    """Bound its core and other files, and those of what it starts later.

    Never its address space: CUDA reserves far more than it uses.
    """
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
