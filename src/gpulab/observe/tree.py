"""Which processes belong to an attempt, and the end of all of them."""

import ctypes
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePath
from weakref import WeakSet

from gpulab.observe.model import Role
from gpulab.observe.proc import Stat, child_finder, command_of, read_stat

PR_SET_CHILD_SUBREAPER = 36
END_WITHIN = 10.0
FREEZE_ROUNDS = 20
RECORDS_AT_MOST = 2000  # of ended processes; of more only the CPU time is kept
WORKER_NAME = "pt_data_worker"  # given by the loader of recent torch; older ones leave the name
SPAWNED = "multiprocessing.spawn"
FORK_SERVER = "multiprocessing.forkserver"
HELPERS = ("multiprocessing.resource_tracker", "torch_shm_manager")
SANDBOXES = ("bwrap",)

Children = Callable[[int], list[int]]

_trees: "WeakSet[Tree]" = WeakSet()
_ours: set[int] = set()
births = threading.Lock()
"""Held while a child is started and named to `keep_apart`: no tree sees it before it is named."""


def become_subreaper() -> None:
    """Make this process the new parent of its descendants' orphans (OSError where refused)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def keep_apart(pid: int) -> None:
    """Name a child of this process that belongs to no attempt.

    Needed only for a child started in a session of its own while an attempt is observed: it would
    look like an orphan of that attempt. A tree that is rooted there later takes it back.
    """
    _ours.add(pid)


@dataclass(eq=False)
class Member:
    """A process of the tree, as last seen."""

    stat: Stat
    parent: int  # the first one seen: orphans change theirs
    command: tuple[str, ...]
    started: float
    role: Role = "other"
    ended: float | None = None
    read: int = 0
    written: int = 0
    peak_private: int = 0

    @property
    def pid(self) -> int:
        """The process id, which may since have been given to another process."""
        return self.stat.pid


class Tree:
    """A process and everything that it started, orphans included.

    An orphan comes to this process where `become_subreaper` was called. A child of ours whose
    session is not ours, that is no tree's root and was not kept apart, is taken for such an orphan:
    start the root in a session of its own.
    """

    def __init__(self, root: int) -> None:
        self.root = root
        self.main: Member | None = None
        self.changes = 0  # births, deaths and processes that became another program
        self.members: list[Member] = []
        self.unlisted = 0  # processes that are not among `members`: there were too many
        self.alive: dict[int, Member] = {}
        self._latest: dict[int, Member] = {}  # by process id, the dead included
        self._zombies: set[tuple[int, int]] = set()
        self._ended_cpu = self._ended_activity = 0.0
        self._root: Member | None = None
        stat = read_stat(f"/proc/{root}")
        self._born = stat.started if stat else math.inf
        self.session = stat.session if stat else root
        self._clock_zero = time.monotonic()
        _trees.add(self)
        _ours.discard(root)

    def clock(self) -> float:
        """Seconds since this object was made."""
        return time.monotonic() - self._clock_zero

    def look(self, at: float, *, thorough: bool) -> None:
        """Take in who is alive now.

        A thorough look asks every thread for its children and reads the command lines again.
        """
        found = self._walk(child_finder(every_thread=thorough))
        for stat in found:
            member = self.alive.get(stat.pid)
            if member is None or member.stat.started != stat.started:
                self._welcome(stat, at)
                continue
            if thorough or stat.name != member.stat.name:
                command = command_of(stat.pid) or member.command
                self.changes += command != member.command
                member.command = command
            member.stat = stat
        self._bury({stat.pid: stat.started for stat in found if stat.alive}, at)
        dead = [stat for stat in found if not stat.alive]
        self._zombies = {(stat.pid, stat.started) for stat in dead}
        for stat in dead:
            self._reap(stat)
        for member in self.alive.values():
            member.role = self._role(member)

    def waiting_parent(self, member: Member) -> Member | None:
        """The nearest ancestor that is no helper: with a fork server, the main process."""
        parent = self.alive.get(member.parent)
        while parent and parent.role == "helper":
            parent = self.alive.get(parent.parent)
        return parent

    def cpu(self) -> float:
        """CPU seconds of the whole tree so far.

        A process that lived between two looks shows only in the sum its parent keeps of reaped
        children, one that was never reaped only in what was seen of it: the larger sum is nearer.
        """
        seen = self._ended_cpu + sum(member.stat.cpu for member in self.alive.values())
        current = {member.stat for member in self.alive.values()}
        current |= {self._root.stat} if self._root else set()
        return max(seen, sum(stat.cpu + stat.waited_cpu for stat in current))

    def activity(self) -> float:
        """CPU seconds that never decrease, reaped children counted twice: for comparison only."""
        alive = [member.stat for member in self.alive.values()]
        return self._ended_activity + sum(stat.cpu + stat.waited_cpu for stat in alive)

    def _walk(self, children: Children) -> list[Stat]:
        found: dict[int, Stat] = {}
        orphans = self._orphans(children)
        todo = [*orphans, *self.alive, self.root]
        while todo:
            pid = todo.pop()
            stat = None if pid in found else read_stat(f"/proc/{pid}")
            if stat and (pid in orphans or self._belongs(stat, found)):
                found[pid] = stat
                todo += children(pid) if stat.alive else []
        return list(found.values())

    def _belongs(self, stat: Stat, found: dict[int, Stat]) -> bool:
        """Whether this is a process known by pid and start time, or a child of one."""
        if stat.pid == self.root:
            return stat.started == self._born
        known = self.alive.get(stat.pid)
        return stat.parent in found or (known is not None and known.stat.started == stat.started)

    def _orphans(self, children: Children) -> set[int]:
        """Children of this process that it did not start."""
        with births:
            others = [tree for tree in _trees if tree is not self]
            foreign = _ours.union([self.root], *({tree.root, *tree.alive} for tree in others))
            sessions = {os.getsid(0), *(tree.session for tree in others)}
            ours = children(os.getpid())
        found = set()
        for pid in ours:
            if pid in foreign or (stat := read_stat(f"/proc/{pid}")) is None:
                continue
            # A child of ours may have started in the same clock tick as the root, just before.
            late_enough = stat.started > self._born or stat.session == self.session
            if stat.session not in sessions and late_enough:
                found.add(pid)
        return found

    def _welcome(self, stat: Stat, at: float) -> None:
        if (stat.pid, stat.started) in self._zombies:
            return
        member = Member(stat, stat.parent, command_of(stat.pid), at)
        if len(self.members) < RECORDS_AT_MOST:
            self.members.append(member)
        else:
            self.unlisted += 1
        if stat.pid == self.root:
            self._root = member
        previous = self.alive.get(stat.pid)
        if previous:  # the number was given to a new process since the last look
            self._end(previous, at)
        self.alive[stat.pid] = self._latest[stat.pid] = member
        self.changes += 1

    def _bury(self, living: dict[int, int], at: float) -> None:
        dead = [m for m in self.alive.values() if living.get(m.pid) != m.stat.started]
        for member in dead:
            self._end(member, at)
            del self.alive[member.pid]

    def _end(self, member: Member, at: float) -> None:
        member.ended = at
        self.changes += 1
        self._ended_cpu += member.stat.cpu
        self._ended_activity += member.stat.cpu + member.stat.waited_cpu
        if self.unlisted:
            self._latest.pop(member.pid, None)

    def _reap(self, stat: Stat) -> None:
        """Take the exit status of a dead orphan; the root's is for whoever started it."""
        if stat.pid != self.root and stat.parent == os.getpid():
            with suppress(ChildProcessError):
                os.waitpid(stat.pid, os.WNOHANG)

    def _role(self, member: Member) -> Role:
        if _is_wrapper(member):
            if member is self.main:  # seen before it became the sandbox
                self.main = None
            return "helper"
        parent = self._latest.get(member.parent)
        if self.main is None and (member.pid == self.root or (parent and _is_wrapper(parent))):
            self.main = member
        if member is self.main:
            return "main"
        if member.stat.name == WORKER_NAME:
            return "worker"
        if parent is not None and parent.role == "worker":
            return "other"  # a worker's own child, which looks like it until it is a program
        words = " ".join(member.command)
        from_fork_server = parent is not None and FORK_SERVER in " ".join(parent.command)
        if any(helper in words for helper in HELPERS):
            return "helper"
        if FORK_SERVER in words and not from_fork_server:
            return "helper"
        forked = from_fork_server or (self.main and member.command == self.main.command)
        if SPAWNED in words or forked:
            return "worker"
        return "other"


def _is_wrapper(member: Member) -> bool:
    return bool(member.command) and PurePath(member.command[0]).name in SANDBOXES


def end_tree(tree: Tree) -> None:
    """Kill every process of the tree and wait until none lives; TimeoutError where one does not.

    All are stopped first, so that none can start another behind our back.
    """
    stopped: set[int] = set()
    for _ in range(FREEZE_ROUNDS):
        tree.look(tree.clock(), thorough=True)
        new = [member for member in tree.alive.values() if member.pid not in stopped]
        if not new:
            break
        for member in new:
            _send(member, signal.SIGSTOP)
            stopped.add(member.pid)
    deadline = time.monotonic() + END_WITHIN
    while tree.alive:
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {sorted(tree.alive)} do not end, not even by SIGKILL")
        for member in tree.alive.values():
            _send(member, signal.SIGKILL)
        time.sleep(0.01)
        tree.look(tree.clock(), thorough=True)
    tree.look(tree.clock(), thorough=True)  # reaps what had become ours after it was looked at


def _send(member: Member, number: signal.Signals) -> None:
    now = read_stat(f"/proc/{member.pid}")
    if now and now.started == member.stat.started:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(member.pid, number)
