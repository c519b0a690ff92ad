"""Readings from `/proc`. A process may vanish at any moment: what is gone reads as None."""

import os
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
KIB = 1024
CHUNK = 65536
# Clean pages are those of files, torch's libraries among them: whether they count as private
# depends on who else has them mapped, and they can be dropped at any time.
PRIVATE = ("Private_Dirty:", "SwapPss:")

# Signals that programs use to wake themselves or each other: USR1, USR2, ALRM, VTALRM, PROF, IO.
WAKING_SIGNALS = (10, 12, 14, 26, 27, 29)
FIRST_REALTIME_SIGNAL = 34


class Denied:
    """The kernel refused a reading: not gone, but not ours to see."""


DENIED = Denied()


@dataclass(frozen=True)
class Stat:
    """One line of `stat`, of a process or of a thread; `cpu` and `waited_cpu` in seconds."""

    pid: int
    name: str
    state: str
    parent: int
    session: int
    cpu: float
    waited_cpu: float  # of children that ended and were reaped
    faults: int  # pages that it was given or that it copied
    threads: int
    started: int  # ticks since boot; with the pid it names a process for good

    @property
    def alive(self) -> bool:
        """A zombie counts as alive while other threads of it still run."""
        return self.state not in "ZX" or self.threads > 1


def read(path: str) -> str | Denied | None:
    """The text of a small file under /proc, None where it is gone, DENIED where it is refused."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        return DENIED
    except OSError:
        return None
    try:
        pieces = []
        while piece := os.read(file, CHUNK):
            pieces.append(piece)
    except PermissionError:
        return DENIED
    except OSError:
        return None
    finally:
        os.close(file)
    return b"".join(pieces).decode(errors="replace")


def read_stat(path: str) -> Stat | None:
    """The stat of `/proc/PID` or `/proc/PID/task/TID`, None where it is gone."""
    text = read(f"{path}/stat")
    if not isinstance(text, str):
        return None
    # The name is in parentheses and may itself hold any character, parentheses too.
    before, _, after = text.rpartition(")")
    pid, _, name = before.partition(" (")
    field = after.split()
    ticks = [int(value) for value in field[11:15]]
    return Stat(
        pid=int(pid),
        name=name,
        state=field[0],
        parent=int(field[1]),
        session=int(field[3]),
        cpu=(ticks[0] + ticks[1]) / TICKS_PER_SECOND,
        waited_cpu=(ticks[2] + ticks[3]) / TICKS_PER_SECOND,
        faults=int(field[7]),
        threads=int(field[17]),
        started=int(field[19]),
    )


def threads_of(pid: int) -> list[int]:
    """Thread ids of a process, the main thread's first; empty where it is gone."""
    try:
        with os.scandir(f"/proc/{pid}/task") as entries:  # closed, if the process goes meanwhile
            return sorted(int(entry.name) for entry in entries)
    except OSError:
        return []


def command_of(pid: int) -> tuple[str, ...]:
    """The command line; empty for a zombie or a process that is gone."""
    text = read(f"/proc/{pid}/cmdline")
    return tuple(text.rstrip("\0").split("\0")) if isinstance(text, str) and text else ()


def transfer_of(pid: int) -> tuple[int, int] | Denied | None:
    """Bytes read and written so far."""
    text = read(f"/proc/{pid}/io")
    if not isinstance(text, str):
        return text
    values = dict(line.split(": ") for line in text.splitlines())
    return int(values["rchar"]), int(values["wchar"])


def private_memory_of(pid: int) -> int | Denied | None:
    """Bytes that no other process shares. The kernel walks all pages for it: milliseconds."""
    text = read(f"/proc/{pid}/smaps_rollup")
    if not isinstance(text, str):
        return text if _kernel_tells_private_memory() else DENIED
    lines = [line.split() for line in text.splitlines()]
    return sum(int(words[1]) for words in lines if words[0] in PRIVATE) * KIB


def pages_of(pid: int) -> tuple[int, int] | None:
    """Anonymous and resident bytes, at no cost; a page shared with a forked child is counted."""
    text = read(f"/proc/{pid}/statm")
    if not isinstance(text, str):
        return None
    resident, shared = (int(pages) * PAGE for pages in text.split()[1:3])
    return resident - shared, resident


def can_be_woken_by_signal(pid: int) -> bool:
    """Whether the process handles a signal that timers or other processes use to wake it."""
    text = read(f"/proc/{pid}/status")
    if not isinstance(text, str):
        return True
    caught = int(next(line for line in text.splitlines() if line.startswith("SigCgt:"))[7:], 16)
    waking = sum(1 << signal - 1 for signal in WAKING_SIGNALS)
    return bool(caught & waking) or caught >> FIRST_REALTIME_SIGNAL - 1 != 0


def child_finder(*, every_thread: bool) -> Callable[[int], list[int]]:
    """A function from a process id to the ids of its children, as they are now.

    Only a process with unusual habits forks from a thread other than its main one, so a quick
    look may leave the other threads out.
    """
    if _kernel_lists_children():

        def listed(pid: int) -> list[int]:
            found = []
            for thread in threads_of(pid) if every_thread else [pid]:
                text = read(f"/proc/{pid}/task/{thread}/children")
                found += [int(child) for child in text.split()] if isinstance(text, str) else []
            return found

        return listed
    children = defaultdict(list)
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and (stat := read_stat(f"/proc/{entry.name}")):
            children[stat.parent].append(stat.pid)
    return lambda pid: children.get(pid, [])


@cache
def _kernel_tells_private_memory() -> bool:
    return isinstance(read("/proc/self/smaps_rollup"), str)


@cache
def _kernel_lists_children() -> bool:
    return isinstance(read(f"/proc/self/task/{os.getpid()}/children"), str)
