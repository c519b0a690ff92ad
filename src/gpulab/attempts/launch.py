"""The seam between the runner and what surrounds an attempt, and its plain side: no sandbox."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from gpulab.attempts import messages, own_shm
from gpulab.attempts.job import CHILD, Job, Setting
from gpulab.attempts.processes import Pipes, Process, limit, start
from gpulab.attempts.waiting import Waiting, control_pair, waiting_for
from gpulab.model import LabError
from gpulab.observe import births, keep_apart

WARM = ("torch",)  # what a process imports while it waits


class NotPossibleHereError(LabError):
    """This machine cannot give an attempt what its job asks for: undecided, and nobody's fault."""

    def __init__(self, text: str) -> None:
        super().__init__(text, code=3)


@dataclass
class Launched:
    """An attempt that has just begun.

    Attributes:
        process: the root of its tree of processes, a child of this process.
        outputs: descriptors to read by name: stdout, stderr, and answer for a job with a call.
            Whoever takes a descriptor out closes it.
        folder: the work folder by the name that the attempt knows it by.
        sources: the same files where the attempt cannot change them, or `folder` itself.
        waited: its processes were there before the job came.
        out_of_memory: whether the kernel ended a process of it at its memory limit.
        release: closed once no process of it lives; gives back what was set up for it.
    """

    process: Process
    outputs: dict[str, int]
    folder: Path
    sources: Path
    waited: bool = False
    out_of_memory: Callable[[], bool] = lambda: False
    release: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def exit_code(self) -> int:
        """Wait for the end; a signal's number is negative."""
        return self.process.wait()

    def close(self) -> None:
        """Give everything back, after the end of every process of it."""
        for fd in self.outputs.values():
            os.close(fd)
        self.outputs.clear()
        self.release.close()


class Prepared(Protocol):
    """A process that was started for one job that is to come."""

    def become_ready(self) -> None:
        """Wait until it has imported what it was told to; CUDA stays untouched.

        Raises:
            LabError: it does not start, or was killed.
        """

    def suits(self, job: Job) -> bool:
        """Whether the job would run as in a fresh process."""

    def deliver(self, job: Job) -> Launched:
        """Let the job begin.

        Raises:
            LabError: the process has ended meanwhile.
        """

    def kill(self) -> None:
        """End it, from any thread; whoever uses it gets a LabError."""

    def close(self) -> None:
        """End it, unused, and give everything back."""


class Launcher(Protocol):
    """Starts attempts on one level of hiding: "local" or "isolated"."""

    level: str

    def launch(self, job: Job) -> Launched:
        """Start the job in a fresh process.

        Raises:
            LabError: it cannot be started; NotPossibleHereError: not on this machine.
        """

    def prepare(self, setting: Setting, modules: tuple[str, ...] = WARM) -> Prepared:
        """Start a process that imports modules and waits for a job of this setting.

        Raises:
            LabError: it cannot be started.
        """


class LocalLauncher:
    """As the same user, in the same file system; nothing is hidden."""

    level = "local"

    def prepare(self, setting: Setting, modules: tuple[str, ...] = WARM) -> LocalWaiting:
        """Start a process that waits; see `Launcher`."""
        begin = _own_shm(setting)
        with contextlib.ExitStack() as stack:
            pipes = stack.enter_context(Pipes(answer=True))
            ours, theirs = control_pair()
            stack.enter_context(theirs)
            inherited = [theirs.fileno(), pipes.write["answer"]]
            command = [*begin, str(setting.python), str(CHILD)]
            command += waiting_for("", modules, inherited)
            try:
                # In our session, that nobody takes it for an orphan before it is kept apart.
                process = start(
                    command,
                    pipes,
                    inherited,
                    setting.environment(),
                    Path("/"),
                    session=False,
                )
            except LabError:
                ours.close()
                raise
            limit(process.pid)
            return LocalWaiting(process, pipes.take(), ours)

    def launch(self, job: Job) -> Launched:
        """Start the job; see `Launcher`."""
        python, begin = str(job.python), _own_shm(job.setting)
        with contextlib.ExitStack() as stack:
            pipes = stack.enter_context(Pipes(answer=job.call is not None))
            command, inherited = [python, job.script, *job.arguments], []
            if job.call is not None:
                request = _request_file(job)
                stack.callback(os.close, request)
                inherited = [request, pipes.write["answer"]]
                command = [python, str(CHILD), *map(str, inherited)]
            environment = job.environment()
            with births:
                process = start([*begin, *command], pipes, inherited, environment, job.folder)
                keep_apart(process.pid)  # until it is observed
            limit(process.pid)
            return Launched(process, pipes.take(), job.folder, job.folder)


def _own_shm(setting: Setting) -> list[str]:
    """What to put before a command that is to have a /dev/shm of the setting's size.

    Raises:
        NotPossibleHereError: the machine does not let us.
    """
    if setting.shm_bytes is None:
        return []
    begin = [str(setting.python), "-I", str(own_shm.PROGRAM), str(setting.shm_bytes)]
    if (why := _refusal_of_shm(*begin)) is not None:
        raise NotPossibleHereError(
            "This exercise needs a /dev/shm of its own size, and this machine lets no process have "
            f"one ({why}). Allow user namespaces, or use a lab machine."
        )
    return begin


@functools.cache
def _refusal_of_shm(*begin: str) -> str | None:
    """Why a command that begins so would not start; None where it would."""
    tried = subprocess.run(
        [*begin, begin[0], "-c", ""], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return tried.stderr.decode("utf-8", "replace").strip() if tried.returncode else None


def _request_file(job: Job) -> int:
    fd = os.memfd_create("request")
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(messages.pack(job.request()))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


class LocalWaiting(Waiting):
    """A process that waits without a sandbox."""

    def deliver(self, job: Job) -> Launched:
        """Let the job begin; see `Prepared`."""
        fresh = job.call is None and not self.warm
        place = {"folder": str(job.folder), "environment": job.environment(), "fresh": fresh}
        self.send(job.request() | place)
        return Launched(self.process, self.take_outputs(job), job.folder, job.folder, waited=True)
