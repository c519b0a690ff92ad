"""A control group for each attempt: memory, processes and CPU, versions 1 and 2."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpulab.model import LabError

MOUNTED = Path("/sys/fs/cgroup")
CONTROLLERS = ("memory", "pids", "cpu")
OF_SWAP = ("memory.swap.max", "memory.memsw.limit_in_bytes")
PERIOD = 100_000  # microseconds, over which CPU time is shared out
BEHIND, FORWARD = 1, 100  # CPU weights of a group that waits, and of one that runs
EMPTY_WITHIN = 10.0  # seconds until the last process of a killed group is gone


@dataclass(frozen=True)
class Quota:
    """What all processes of an attempt may have together; memory in bytes, CPU in cores."""

    memory: int
    pids: int
    cpus: float


class Group:
    """One attempt's group, on one hierarchy (version 2) or on several (version 1).

    Args:
        name: its path below every hierarchy.
        quota: its limits.
        mounted: where control groups are mounted.

    Raises:
        LabError: a limit cannot be set.
    """

    def __init__(self, name: str, quota: Quota, mounted: Path = MOUNTED) -> None:
        self._unified = (mounted / "cgroup.controllers").exists()
        hierarchies = [mounted] if self._unified else [mounted / kind for kind in CONTROLLERS]
        for hierarchy in hierarchies:
            if not (hierarchy / "cgroup.procs").exists():
                raise _refusal(hierarchy, "it is not mounted")
        # Where two controllers share a hierarchy of version 1, their folders are one by a link.
        self._folders = list(dict.fromkeys(found.resolve() / name for found in hierarchies))
        try:
            if self._unified:
                self._enable(mounted, name)
            for folder in self._folders:
                self._make(folder)
            for setting, value in self._settings(quota):
                self._set(setting, value)
        except BaseException:
            self.remove()
            raise

    @property
    def entrances(self) -> list[Path]:
        """Files that take the number of a process that enters."""
        return [folder / "cgroup.procs" for folder in self._folders]

    def come_forward(self) -> None:
        """Compete for the CPU as others do; until then the group takes what nobody else wants.

        Raises:
            LabError: it cannot be set.
        """
        self._set(*self._weight(FORWARD))

    def killed_for_memory(self) -> bool:
        """Whether the kernel ended a process because the memory limit was reached."""
        name = "memory.events" if self._unified else "memory.oom_control"
        for folder in self._folders:
            with suppress(OSError):
                words = (folder / name).read_text().split()
                return int(dict(zip(words[::2], words[1::2], strict=True)).get("oom_kill", 0)) > 0
        return False

    def remove(self) -> None:
        """Remove it, once its processes are gone.

        Raises:
            LabError: they do not go.
        """
        deadline = time.monotonic() + EMPTY_WITHIN
        for folder in self._folders:
            while folder.exists():
                try:
                    folder.rmdir()
                except OSError as error:
                    if time.monotonic() > deadline:
                        raise LabError(
                            f"The control group {folder} cannot be removed ({error.strerror}); "
                            "end its processes.",
                            code=4,
                        ) from None
                    time.sleep(0.005)

    def _enable(self, mounted: Path, name: str) -> None:
        """Hand the controllers down to the group; version 1 has no such thing."""
        folder = mounted
        for part in Path(name).parts:
            folder.mkdir(exist_ok=True)
            _write(folder / "cgroup.subtree_control", " ".join(f"+{k}" for k in CONTROLLERS))
            folder /= part

    def _make(self, folder: Path) -> None:
        with suppress(OSError):  # what an ended grader left of the last attempt
            folder.rmdir()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _refusal(folder, error.strerror) from None

    def _weight(self, weight: int) -> tuple[str, str]:
        return ("cpu.weight", str(weight)) if self._unified else ("cpu.shares", str(10 * weight))

    def _settings(self, quota: Quota) -> Iterator[tuple[str, str]]:
        yield self._weight(BEHIND)
        memory, time_share = str(quota.memory), str(int(quota.cpus * PERIOD))
        yield "pids.max", str(quota.pids)
        if self._unified:
            yield "memory.max", memory
            yield "memory.swap.max", "0"
            yield "cpu.max", f"{time_share} {PERIOD}"
        else:
            yield "memory.limit_in_bytes", memory
            yield "memory.memsw.limit_in_bytes", memory
            yield "cpu.cfs_period_us", str(PERIOD)
            yield "cpu.cfs_quota_us", time_share

    def _set(self, setting: str, value: str) -> None:
        found = [folder / setting for folder in self._folders if (folder / setting).exists()]
        if not found and setting in OF_SWAP and not _has_swap():
            return  # the kernel does not count swap, and there is none to fill
        _write(found[0] if found else self._folders[0] / setting, value)


def _has_swap() -> bool:
    return len(Path("/proc/swaps").read_text(encoding="utf-8").splitlines()) > 1


def _write(path: Path, value: str) -> None:
    try:
        fd = os.open(path, os.O_WRONLY)  # not made: where it is missing there is no such limit
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(value)
    except OSError as error:
        raise _refusal(path, error.strerror) from None


def _refusal(path: Path, why: str | None) -> LabError:
    return LabError(
        f"An attempt's limits cannot be set at {path} ({why}); give the grader control groups "
        "with the controllers memory, pids and cpu.",
        code=4,
    )
