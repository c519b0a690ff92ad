"""Attempts in bubblewrap: another user, no network, few system calls, bounded, nothing left."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gpulab.attempts.job import Job, Setting
from gpulab.attempts.launch import WARM, Launched
from gpulab.attempts.processes import FILE_BYTES, Pipes, start
from gpulab.attempts.sandbox import accounts, cdi, seccomp
from gpulab.attempts.sandbox.cgroups import Group, Quota
from gpulab.attempts.sandbox.config import SandboxConfig
from gpulab.attempts.sandbox.stage import INSIDE, Stage
from gpulab.attempts.sandbox.view import CHILD_INSIDE, MIB, View
from gpulab.attempts.waiting import Waiting, control_pair, waiting_for
from gpulab.model import Device, LabError

# Enter the control groups, bound core and other files, become bubblewrap.
ENTER = """
while [ "$1" != -- ]; do echo $$ > "$1" || exit 125; shift; done; shift
ulimit -c 0; ulimit -f "$1"; shift
exec "$@"
"""
BLOCK = 512  # bytes that the shell's `ulimit -f` counts in
GONE_WITHIN = 5.0  # seconds
OUTSIDE = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


class SandboxLauncher:
    """Starts attempts that see their root file system and their own work, and nothing else.

    Raises:
        LabError: this machine cannot isolate attempts.
    """

    level = "isolated"

    def __init__(self, config: SandboxConfig) -> None:
        if os.geteuid() != 0:
            raise LabError("Only root can isolate attempts; start the grader as root.", code=4)
        found = shutil.which("bwrap")
        if found is None:
            raise LabError("Attempts are isolated by bubblewrap; install it.", code=4)
        self._bwrap = found
        self._config = config
        self._gpu = cdi.find(config.gpu) if config.gpu else None
        self._filter = seccomp.program()

    def launch(self, job: Job) -> Launched:
        """Start the job in a fresh process; see `Launcher`."""
        waiting = self.prepare(job.setting, ())
        waiting.become_ready()
        return waiting.deliver(job)

    def prepare(self, setting: Setting, modules: tuple[str, ...] = WARM) -> SandboxWaiting:
        """Start a process that waits; see `Launcher`."""
        if setting.device is Device.CUDA and self._gpu is None:
            raise LabError("The isolation file names no `gpu`; add it.", code=4)
        with contextlib.ExitStack() as release:
            account = accounts.take(self._config.uids.numbers, Path(self._config.locks))
            release.callback(os.close, account.lock)
            group = Group(f"{self._config.cgroup}/attempt-{account.number}", self._quota())
            release.callback(group.remove)
            waiting = self._start_in(group, account, setting, modules)
            waiting.release.push(release.pop_all())
            return waiting

    def _start_in(
        self, group: Group, account: accounts.Account, setting: Setting, modules: tuple[str, ...]
    ) -> SandboxWaiting:
        view = View(self._config, self._gpu, setting, account.number)
        with contextlib.ExitStack() as stack:
            pipes = stack.enter_context(Pipes(answer=True))
            ours, theirs = control_pair()
            stack.enter_context(theirs)
            texts = {n: stack.enter_context(_file(text)) for n, text in view.texts.items()}
            rules = stack.enter_context(_file(self._filter))
            words = view.arguments(texts)
            words += ["--seccomp", str(rules), "--sync-fd", str(account.lock)]
            listed = stack.enter_context(_file("\0".join([*words, ""]).encode()))
            ends = [theirs.fileno(), pipes.write["answer"]]
            command = [
                *_entering(group.entrances),
                *(self._bwrap, "--args", str(listed), "--", *_as(account.number)),
                *(str(setting.python), str(CHILD_INSIDE)),
                *waiting_for(str(INSIDE), modules, ends),
            ]
            inherited = [*ends, *texts.values(), rules, account.lock, listed]
            try:
                process = start(command, pipes, inherited, OUTSIDE, Path("/"), session=False)
            except LabError:
                ours.close()
                raise
            return SandboxWaiting(
                process, pipes.take(), ours, config=self._config, group=group, view=view
            )

    def _quota(self) -> Quota:
        bounds = self._config.bounds
        return Quota(bounds.memory_mib * MIB, bounds.pids, bounds.cpus)


@dataclass(kw_only=True)
class SandboxWaiting(Waiting):
    """A process that waits in its sandbox."""

    config: SandboxConfig
    group: Group
    view: View
    killing: threading.Lock = field(default_factory=threading.Lock)

    def kill(self) -> None:
        """End it: the sandbox's first process, then bubblewrap, which reaps it and goes.

        The other way round the first process would be an orphan, and nobody's to reap. Bubblewrap
        is stopped meanwhile, or it might be about to start that process.
        """
        pid = self.process.pid
        with self.killing, contextlib.suppress(OSError):
            if self.process.poll() is None:
                os.kill(pid, signal.SIGSTOP)
                os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
                for child in children:
                    os.kill(int(child), signal.SIGKILL)
                os.kill(pid, signal.SIGCONT if children else signal.SIGKILL)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(GONE_WITHIN)
        super().kill()

    def deliver(self, job: Job) -> Launched:
        """Let the job begin; see `Prepared`."""
        stage = Stage(job)
        place = {
            "folder": str(stage.job.folder),
            "environment": self.view.environment,
            "fresh": job.call is None and not self.warm,
        }
        self.group.come_forward()
        self.send(stage.job.request() | place, stage.files)
        if self.stage is not None:
            most = self.config.bounds.work_mib * MIB
            self.release.callback(stage.bring_back, self.stage, most)
        return SandboxLaunched(
            process=self.process,
            outputs=self.take_outputs(job),
            folder=stage.job.folder,
            sources=job.folder,
            waited=True,
            out_of_memory=self.group.killed_for_memory,
            release=self.release,
        )


class SandboxLaunched(Launched):
    """An attempt in a sandbox."""

    def exit_code(self) -> int:
        """Wait for the end; bubblewrap says 128 and the number where a signal ended it."""
        code = self.process.wait()
        return 128 - code if code - 128 in set(signal.Signals) else code


def _entering(entrances: list[Path]) -> list[str]:
    return ["/bin/sh", "-c", ENTER, "sh", *map(str, entrances), "--", str(FILE_BYTES // BLOCK)]


def _as(number: int) -> list[str]:
    """Become that user, for good, and without a right."""
    words = ["/usr/bin/setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups"]
    return [*words, "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--"]


@contextlib.contextmanager
def _file(data: bytes) -> Iterator[int]:
    """A file in memory, at its beginning."""
    fd = os.memfd_create("sandbox")
    try:
        with os.fdopen(os.dup(fd), "wb") as file:
            file.write(data)
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)
