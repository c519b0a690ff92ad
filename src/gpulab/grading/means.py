"""What a grading process makes attempts with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpulab.attempts import (
    ForkLauncher,
    ForkServer,
    Launcher,
    LocalLauncher,
    Setting,
    WarmPool,
    sandbox,
)
from gpulab.grading import machine
from gpulab.model import Device
from gpulab.observe import Gpu


@dataclass(frozen=True)
class Plan:
    """How attempts are to be made.

    Attributes:
        isolation: the sandbox's configuration; None for the level `local`.
        warm: keep a process with torch imported waiting.
        forks: forks them, at level `local`.
    """

    isolation: Path | None = None
    warm: bool = False
    forks: ForkServer | None = None


@dataclass(frozen=True)
class Means:
    """The Python that attempts run on, by its name there, and what starts them."""

    python: Path
    launcher: Launcher
    pools: tuple[WarmPool, ...] = ()

    def wait(self) -> None:
        """Wait until every process that was started beforehand is ready."""
        for pool in self.pools:
            pool.wait()


@contextmanager
def made_ready(plan: Plan) -> Iterator[Means]:
    """Processes that wait for what will probably be asked of them; at the end they are ended.

    Raises:
        LabError: attempts cannot be made this way here.
    """
    device = Device.CPU if Gpu().absent else Device.CUDA
    with ExitStack() as stack:
        launcher: Launcher = LocalLauncher()
        pools: list[WarmPool] = []
        python = machine.attempt_python()
        if plan.forks is not None:
            launcher = ForkLauncher(launcher, plan.forks)
        if plan.isolation is not None:
            config = sandbox.read(plan.isolation)
            python = Path(config.python)
            settings = {Setting(python, Device.CPU), Setting(python, device)}
            cold = WarmPool(sandbox.SandboxLauncher(config), *settings, modules=())
            launcher = stack.enter_context(cold)
            pools.append(cold)
        if plan.warm:
            launcher = stack.enter_context(WarmPool(launcher, Setting(python, device)))
            pools.append(launcher)
        yield Means(python, launcher, tuple(pools))
