"""What the observers report. Times are seconds since the observer was made; sizes are bytes."""

from dataclasses import dataclass
from typing import Literal

Role = Literal["main", "worker", "helper", "other"]


@dataclass(frozen=True)
class Frame:
    """One call on a Python stack.

    `file` is named from the work folder on where it lies there; `source` is then the line's text.
    """

    file: str
    line: int
    function: str
    source: str | None


@dataclass(frozen=True)
class ThreadStack:
    """One thread's calls, innermost first, those in the attendee's own files before all others."""

    name: str
    frames: tuple[Frame, ...]


@dataclass(frozen=True)
class WaitingProcess:
    """A process that waits; `waits_for` completes the sentence "it waits for ..."."""

    pid: int
    role: Role
    threads: tuple[ThreadStack, ...]
    waits_for: str


@dataclass(frozen=True)
class Hang:
    """A tree that makes no progress.

    `proof`: the first of `waiting` can be woken by a signal only, the others wait for it.
    `stillness`: nothing in the tree gave a sign of life since `last_sign_of_life`.
    """

    kind: Literal["proof", "stillness"]
    at: float
    last_sign_of_life: float
    waiting: tuple[WaitingProcess, ...]


@dataclass(frozen=True)
class MemorySample:
    """Memory of the whole tree; `resident` counts a page once for each process that maps it.

    `workers` is the part of `private` that the loader's workers have.
    """

    at: float
    private: int
    resident: int
    gpu: int | None
    workers: int = 0


@dataclass(frozen=True)
class ProcessRecord:
    """One process that belonged to the tree.

    `started` and `ended` are when it was first seen alive and first seen gone. `cpu` is in seconds.
    `read` and `written` count files and pipes, and what its reaped children moved, as the kernel
    does.
    """

    pid: int
    parent: int
    role: Role
    command: tuple[str, ...]
    name: str
    started: float
    ended: float | None
    cpu: float
    read: int
    written: int
    peak_private: int


@dataclass(frozen=True)
class Evidence:
    """All that was seen. `missing` says in words what could not be observed, and why."""

    wall: float
    cpu: float
    memory: tuple[MemorySample, ...]
    processes: tuple[ProcessRecord, ...]
    missing: tuple[str, ...]
