"""Recognising that a tree of processes makes no progress, from successive looks at it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from gpulab.observe.proc import can_be_woken_by_signal, read, read_stat, threads_of
from gpulab.observe.tree import Member, Tree
from gpulab.observe.waits import UNKNOWN, Wait, wait_of

STILL_FOR = 6.0  # a slow but healthy shutdown of the loader can stand still for 5 s
PROVEN_AFTER = 0.5
CPU_NOISE = 0.03  # the loader's own polling costs some milliseconds
LONGEST_GAP = 0.5  # of a longer time between two looks only this much counts as observed


@dataclass(frozen=True)
class Thread:
    """A thread as it is now; `wait` is None while it runs or waits for a disk."""

    id: int
    cpu: float
    wait: Wait | None
    runs: str | None = None  # how often and how long it ran, to the nanosecond, where it sleeps

    @property
    def shows_life(self) -> bool:
        """Running, in disk wait or in a timed sleep; or unseen: that cannot count as still."""
        return self.wait is None or self.wait.kind in ("timer", "unknown")


def threads_now(pid: int) -> Iterable[Thread]:
    """The threads of a process, read one by one as they are asked for, the main thread's first."""
    for thread in threads_of(pid):
        base = f"/proc/{pid}/task/{thread}"
        stat = read_stat(base)
        if stat is None or stat.state in "ZX":
            continue
        wait = None if stat.state in "RD" else wait_of(pid, thread)
        if wait == UNKNOWN and read_stat(base) is None:  # it ended just now
            continue
        runs = None if wait is None else read(f"{base}/schedstat")
        yield Thread(thread, stat.cpu, wait, runs if isinstance(runs, str) else None)


ThreadReader = Callable[[int], Iterable[Thread]]


@dataclass
class Candidate:
    """A process that may be proven to hang, and the thread of its parent that waits for it."""

    member: Member
    parent: Member | None
    since: float
    output: int
    threads: tuple[Thread, ...]
    parent_thread: Thread | None


@dataclass(frozen=True)
class Finding:
    """What was recognised.

    `proof`: each of `stuck` can be woken by a signal only and `parents` wait for them; `gives_up`
    says that a parent's wait has a time-out, so that it may go on without them.
    `stillness`: all of `stuck` stand still.
    """

    kind: Literal["proof", "stillness"]
    last_sign_of_life: float
    stuck: tuple[Member, ...]
    parents: tuple[Member, ...] = ()
    gives_up: bool = False


class Recogniser:
    """Follows one tree from look to look."""

    def __init__(self, tree: Tree, threads: ThreadReader = threads_now) -> None:
        self._tree = tree
        self._threads = threads
        self._candidates: dict[int, Candidate] = {}
        self._looked = self._last_sign = 0.0
        self._output = self._changes = 0
        self._activity = 0.0

    def look(self, at: float, output: int, *, gpu_busy: bool = False) -> Finding | None:
        """Judge the tree as it is at `at`; `output` counts the bytes that it wrote so far."""
        self._discount_gap(at)
        proven = self._proven(at, output)
        if proven:
            return self._proof(proven)
        if gpu_busy or self._shows_life(output):
            self._last_sign, self._output = at, output
            self._changes, self._activity = self._tree.changes, self._tree.activity()
            return None
        still = [member for member in self._tree.alive.values() if member.role != "helper"]
        if still and at - self._last_sign > STILL_FOR:
            return Finding("stillness", self._last_sign, tuple(still))
        return None

    def doubt(self, at: float) -> None:
        """Begin anew with proofs: the last one did not stand."""
        for candidate in self._candidates.values():
            candidate.since = at

    def _discount_gap(self, at: float) -> None:
        excess = max(0.0, at - self._looked - LONGEST_GAP)
        self._looked = at
        self._last_sign += excess
        for candidate in self._candidates.values():
            candidate.since += excess

    def _shows_life(self, output: int) -> bool:
        """Output, a birth or a death, CPU time, or a thread: the cheapest questions first."""
        return (
            output != self._output
            or self._tree.changes != self._changes
            or self._tree.activity() - self._activity > CPU_NOISE
            or any(thread.shows_life for pid in self._tree.alive for thread in self._threads(pid))
        )

    def _proven(self, at: float, output: int) -> list[Candidate]:
        previous, self._candidates = self._candidates, {}
        for member in self._tree.alive.values():
            candidate = self._candidate(member, at, output)
            if candidate is None:
                continue
            before = previous.get(member.pid)
            unchanged = before is not None and _same(before, candidate)
            self._candidates[member.pid] = before if before and unchanged else candidate
        return [
            candidate
            for candidate in self._candidates.values()
            if at - candidate.since >= PROVEN_AFTER
            and not can_be_woken_by_signal(candidate.member.pid)
        ]

    def _candidate(self, member: Member, at: float, output: int) -> Candidate | None:
        if member.role == "helper":
            return None
        threads = self._all_locked(member.pid)
        if not threads:
            return None
        if member is self._tree.main:
            alone = all(m is member or m.role == "helper" for m in self._tree.alive.values())
            return Candidate(member, None, at, output, threads, None) if alone else None
        parent = self._tree.waiting_parent(member)
        waiting = self._blocked_main_thread(parent.pid) if parent else None
        return Candidate(member, parent, at, output, threads, waiting) if waiting else None

    def _all_locked(self, pid: int) -> tuple[Thread, ...]:
        """All threads, if each waits without a time-out on a lock of its own process, else ()."""
        threads = []
        for thread in self._threads(pid):
            if thread.wait is None or thread.wait.kind != "private lock" or thread.wait.timed:
                return ()
            threads.append(thread)
        return tuple(threads)

    def _blocked_main_thread(self, pid: int) -> Thread | None:
        main = next(iter(self._threads(pid)), None)
        return main if main and main.id == pid and not main.shows_life else None

    def _proof(self, proven: list[Candidate]) -> Finding:
        parents = {c.parent.pid: c.parent for c in proven if c.parent}
        waits = [c.parent_thread.wait for c in proven if c.parent_thread]
        return Finding(
            "proof",
            min(candidate.since for candidate in proven),
            tuple(candidate.member for candidate in proven),
            tuple(parents.values()),
            gives_up=any(wait is not None and wait.timed for wait in waits),
        )


def _same(before: Candidate, now: Candidate) -> bool:
    """Nothing was written, the process has not run at all, its parent's main thread hardly."""
    if before.parent_thread and now.parent_thread:
        parent_ran = now.parent_thread.cpu - before.parent_thread.cpu > CPU_NOISE
    else:
        parent_ran = before.parent_thread is not now.parent_thread
    same_process = before.member is now.member and before.parent is now.parent
    unchanged = before.output == now.output and before.threads == now.threads
    return same_process and unchanged and not parent_ran
