"""Attempts in a sandbox on this machine's own root file system."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from gpulab import attempts
from gpulab.attempts import Attempt, Call, Job, Launcher, WarmPool
from gpulab.attempts.sandbox import SandboxConfig, SandboxLauncher
from gpulab.attempts.sandbox.config import Bounds

CGROUPS = Path("/sys/fs/cgroup")

Make = Callable[..., Attempt]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    if os.geteuid() == 0 and shutil.which("bwrap"):
        return
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.skip(reason="needs root and bubblewrap"))


@pytest.fixture(scope="session")
def config(tmp_path_factory: pytest.TempPathFactory) -> SandboxConfig:
    """This machine as the root file system, and the Python of these tests."""
    return SandboxConfig(
        python=sys.executable,
        folders=(sys.prefix, sys.base_prefix),
        cgroup="gpulab-tests",
        locks=str(tmp_path_factory.mktemp("locks")),
        bounds=Bounds(memory_mib=2048, shm_mib=64, tmp_mib=64, work_mib=64, pids=128, cpus=2.0),
    )


@dataclass
class Sandbox:
    """Makes attempts of scripts given as text."""

    config: SandboxConfig
    folder: Path
    made: list[Job] = field(default_factory=list)

    def job(self, script: str, call: Call | None = None, **options: Any) -> Job:
        """A job whose script is `script`."""
        number = len(self.made)
        work, scratch = self.folder / f"{number}" / "exercise-9", self.folder / f"scratch-{number}"
        work.mkdir(parents=True)
        scratch.mkdir()
        (work / "train.py").write_text(textwrap.dedent(script), encoding="utf-8")
        job = Job(work, "train.py", scratch, call=call, python=Path(self.config.python), **options)
        self.made.append(job)
        return job

    def bounded(self, **bounds: Any) -> Sandbox:
        """The same with other bounds."""
        changed = replace(self.config, bounds=replace(self.config.bounds, **bounds))
        return Sandbox(changed, self.folder, self.made)

    @property
    def launcher(self) -> Launcher:
        """What starts its attempts."""
        return SandboxLauncher(self.config)

    def run(self, script: str, **options: Any) -> Attempt:
        """Run the script."""
        return attempts.run(self.job(script, **options), launcher=self.launcher)

    def ask(self, script: str, *arguments: Any, **options: Any) -> Any:
        """What the script's function `f` answers."""
        call = Call("f", arguments)
        made = attempts.run(self.job(script, call, **options), launcher=self.launcher)
        assert made.answered, (made.ended, made.error, made.output())
        return made.answer

    def ask_warm(self, script: str, *arguments: Any) -> Any:
        """The same, of a process that waited with torch imported."""
        job = self.job(script, Call("f", arguments))
        with WarmPool(self.launcher, job.setting) as pool:
            made = attempts.run(job, launcher=pool)
        assert made.answered, (made.ended, made.error, made.output())
        return made.answer

    @staticmethod
    def leader(pid: int) -> int:
        """The attempt's own process, the last of the line that begins with `pid`."""
        while children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            pid = int(children[0])
        return pid

    def groups(self) -> list[Path]:
        """Control groups of attempts that exist now."""
        return list(CGROUPS.glob(f"**/{self.config.cgroup}/attempt-*"))


@pytest.fixture
def sandbox(config: SandboxConfig, tmp_path: Path) -> Iterator[Sandbox]:
    made = Sandbox(config, tmp_path / "jobs")
    made.folder.mkdir()
    yield made
    assert made.groups() == []
