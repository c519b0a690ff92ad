"""Processes that wait for their one job: started, perhaps with torch imported, CUDA untouched."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gpulab.attempts import messages
from gpulab.attempts.job import Job
from gpulab.attempts.processes import Process
from gpulab.model import LabError
from gpulab.observe import keep_apart

READY_WITHIN = 120.0  # seconds; importing torch from a cold disk takes many
SENT_WITHIN = 60.0
STDERR_SHOWN = 4096

File = tuple[str, bytes | None]
"""A file to put on the stage and its bytes; None makes a folder."""


@dataclass
class Waiting:
    """A process that waits.

    Attributes:
        process: the root of its tree of processes.
        outputs: descriptors to read its standard output, standard error and answer from.
        control: our end of the socket that the job goes by.
        modules: names of the top-level modules that it has imported.
        stage: descriptor of the folder that the sandbox lets us read; None without a sandbox.
        release: gives back what was set up for it.
    """

    process: Process
    outputs: dict[str, int]
    control: socket.socket
    release: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    modules: frozenset[str] = frozenset()
    stage: int | None = None

    def __post_init__(self) -> None:
        keep_apart(self.process.pid)

    @property
    def warm(self) -> bool:
        """Whether torch is imported."""
        return "torch" in self.modules

    def become_ready(self) -> None:
        """Wait until it waits.

        Raises:
            LabError: it ended, or took too long.
        """
        self.control.settimeout(READY_WITHIN)
        try:
            self.control.sendall(b"!")
            data, fds, _, _ = socket.recv_fds(self.control, messages.LENGTH.size, 1)
            if fds:
                self.stage = fds[0]
                self.release.callback(os.close, self.stage)
            (size,) = messages.LENGTH.unpack(data)
            self.modules = frozenset(json.loads(_receive(self.control, size)))
        except (OSError, ValueError, struct.error):
            said = self._last_words()
            self.close()
            raise LabError(f"An attempt's process does not start: {said}.", code=4) from None

    def suits(self, job: Job) -> bool:
        """Whether no file of the work folder would have come before an imported module."""
        return not self.modules & {path.name.partition(".")[0] for path in job.folder.iterdir()}

    def send(self, request: dict[str, Any], files: Iterable[File] = ()) -> None:
        """Let the job begin, and hear that it does.

        Raises:
            LabError: the process has ended before anything of the job was done.
        """
        files = list(files)
        listed = [[name, None if data is None else len(data)] for name, data in files]
        self.control.settimeout(SENT_WITHIN)
        try:
            self.control.sendall(messages.pack(request | {"files": listed}))
            for _, data in files:
                self.control.sendall(data or b"")
            _receive(self.control, 1)
        except OSError as error:
            self.close()
            raise LabError(f"An attempt's process was lost ({error}).", code=4) from None
        self.control.close()

    def take_outputs(self, job: Job) -> dict[str, int]:
        """The descriptors that this job needs, now the caller's."""
        taken, self.outputs = self.outputs, {}
        if job.call is None:
            os.close(taken.pop("answer"))
        return taken

    def kill(self) -> None:
        """End it, from any thread; whoever waits for it gets a LabError."""
        self.process.kill()

    def close(self) -> None:
        """End it and give everything back."""
        self.control.close()
        self.kill()
        self.process.wait()
        for fd in self.outputs.values():
            os.close(fd)
        self.outputs.clear()
        self.release.close()

    def _last_words(self) -> str:
        """The end of what it wrote to standard error."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1)
        os.set_blocking(self.outputs["stderr"], False)
        try:
            said = os.read(self.outputs["stderr"], STDERR_SHOWN).decode("utf-8", "replace")
        except BlockingIOError:
            said = ""
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        return lines[-1].rstrip(".") if lines else f"no answer within {READY_WITHIN:g} s"


def waiting_for(stage: str, modules: Iterable[str], ends: Iterable[int]) -> list[str]:
    """Arguments of the attempt side: wait, with the ends of the control socket and the answer."""
    return ["--wait", stage, ",".join(modules), *map(str, ends)]


def control_pair() -> tuple[socket.socket, socket.socket]:
    """Our end and the waiting process's end of a control socket."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)


def _receive(control: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = control.recv(size - len(data))
        if not piece:
            raise OSError("cut short")
        data += piece
    return bytes(data)
