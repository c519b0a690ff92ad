"""Attempts, and grading processes, forked from a process that has torch imported.

Importing torch costs more than most scripts do. Where the same catalogue is judged many times, one
process imports it, and every attempt is a copy of that process. Level `local` only.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import threading
from pathlib import Path
from typing import Self

from gpulab.attempts.job import Job, Setting
from gpulab.attempts.launch import WARM, Launched, Launcher, LocalWaiting, Prepared
from gpulab.attempts.processes import Adopted, Pipes, limit
from gpulab.attempts.waiting import READY_WITHIN, control_pair
from gpulab.model import LabError
from gpulab.observe import become_subreaper, births, keep_apart

FORK_SERVER = Path(__file__).with_name("fork_server.py")
MODULES = (*WARM, "torch._dynamo")  # the second one is imported by every optimizer
START_WITHIN = 30.0


class ForkServer:
    """A process of one setting that starts others by forking.

    Args:
        server: our end of the socket to it.
        setting: what it was started with, and so all that it starts.
        process: to be waited for at the end, where we started it.
    """

    def __init__(
        self,
        server: socket.socket,
        setting: Setting,
        process: subprocess.Popen[bytes] | None = None,
    ) -> None:
        become_subreaper()  # else what it starts would be nobody's child
        self.setting = setting
        self._server = server
        self._process = process
        self._lock = threading.Lock()
        self._server.settimeout(START_WITHIN)

    @classmethod
    def start(cls, setting: Setting) -> Self:
        """Start one, with torch imported.

        Raises:
            LabError: it does not start.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        modules, fd = ",".join(MODULES), theirs.fileno()
        with theirs:
            process = subprocess.Popen(
                [str(setting.python), str(FORK_SERVER), modules, str(fd)],
                cwd="/",
                env=setting.environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[fd],
            )
        ours.settimeout(READY_WITHIN)
        with contextlib.suppress(TimeoutError):
            if ours.recv(16):
                return cls(ours, setting, process)
        process.kill()
        process.wait()
        ours.close()
        raise LabError("A process to fork attempts from does not start.", code=4)

    def fork(
        self,
        descriptors: list[int],
        command: list[str] | None = None,
        environment: dict[str, str] | None = None,
    ) -> Adopted:
        """Start a process with these descriptors, and no others, as 0, 1, 2, ...

        Args:
            descriptors: remain the caller's, too.
            command: what it executes, with one more descriptor, that of a fork server of its own;
                without a command it waits for a job, with control and answer as 3 and 4.
            environment: that the command gets.

        Raises:
            LabError: the server is gone.
        """
        request = {"command": command or [], "environment": environment or {}}
        with self._lock:
            try:
                socket.send_fds(self._server, [json.dumps(request).encode()], descriptors)
                return Adopted(int(self._server.recv(16)))
            except (OSError, ValueError) as error:
                raise LabError(f"A fork server was lost ({error}).", code=4) from None

    def close(self) -> None:
        """End the server; what it started lives on."""
        self._server.close()
        if self._process is not None:
            self._process.wait()


class ForkLauncher:
    """Forks attempts; leaves to `launcher` those that must be cold or are of another setting."""

    def __init__(self, launcher: Launcher, server: ForkServer) -> None:
        self.level = launcher.level
        self._launcher = launcher
        self._server = server

    def launch(self, job: Job) -> Launched:
        """Start the job; see `Launcher`."""
        if job.cold or job.setting != self._server.setting:
            return self._launcher.launch(job)
        waiting = self._fork()
        waiting.become_ready()
        if not waiting.suits(job):
            waiting.close()
            return self._launcher.launch(job)
        return waiting.deliver(job)

    def prepare(self, setting: Setting, modules: tuple[str, ...] = WARM) -> Prepared:
        """Start a process that waits; see `Launcher`."""
        if setting == self._server.setting and set(modules) <= set(MODULES):
            return self._fork()
        return self._launcher.prepare(setting, modules)

    def _fork(self) -> LocalWaiting:
        with contextlib.ExitStack() as stack:
            pipes = stack.enter_context(Pipes(answer=True))
            ours, theirs = control_pair()
            stack.enter_context(theirs)
            nothing = os.open(os.devnull, os.O_RDONLY)
            stack.callback(os.close, nothing)
            write = pipes.write
            descriptors = [nothing, write["stdout"], write["stderr"], theirs.fileno()]
            try:
                with births:
                    process = self._server.fork([*descriptors, write["answer"]])
                    keep_apart(process.pid)
            except LabError:
                ours.close()
                raise
            limit(process.pid)
            return LocalWaiting(process, pipes.take(), ours)
