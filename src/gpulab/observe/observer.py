"""Watches an attempt from outside: its processes, time, memory, and whether it hangs."""

from dataclasses import replace
from pathlib import Path

from gpulab.observe import waits
from gpulab.observe.gpu import Gpu, uses_gpu
from gpulab.observe.hang import Finding, Recogniser, threads_now
from gpulab.observe.memory import MemorySeries, TreeMemory
from gpulab.observe.model import Evidence, Hang, MemorySample, ProcessRecord, WaitingProcess
from gpulab.observe.proc import Denied, read_stat, transfer_of
from gpulab.observe.stacks import StacksUnavailableError, take_stacks
from gpulab.observe.tree import SPAWNED, WORKER_NAME, Member, Tree, end_tree

THOROUGH_EVERY = 0.2
STACKS_AT_MOST = 8
STACKS_WITHIN = 6.0  # seconds, for all of them
LOADER_POLLS = "_try_get_data"  # the loader's own wait for a worker: with a time-out, but endless


class Observer:
    """The observers of one attempt.

    `pid` is the root of the attempt's tree of processes, started in a session of its own; `folder`
    the work folder, whose lines are shown first, and `inside` the name by which the attempt knows
    it. `waited`: the processes that there are already waited for the attempt to begin; the CPU time
    that they have used does not count. Call `look` about every 50 ms from one thread.
    """

    def __init__(
        self,
        pid: int,
        folder: Path,
        *,
        gpu: Gpu | None = None,
        inside: Path | None = None,
        waited: bool = False,
    ) -> None:
        self.hang: Hang | None = None
        self._folder = folder.resolve()
        self._inside = inside or folder
        self._gpu = gpu
        self._tree = Tree(pid)
        self._recogniser = Recogniser(self._tree)
        self._memory = TreeMemory()
        self._series = MemorySeries()
        self._missing: dict[str, None] = {}
        self._next_thorough = 0.0
        self._gpu_bytes: int | None = None
        if gpu and gpu.absent:
            self._missing[f"GPU: {gpu.absent}"] = None
        self._cpu_before: dict[int, float] = {}
        if waited:
            self._tree.look(self._tree.clock(), thorough=True)
            self._cpu_before = {pid: member.stat.cpu for pid, member in self._tree.alive.items()}

    def look(self, output_bytes: int) -> None:
        """Take one sample; `output_bytes` counts what the attempt has written so far.

        Costs about a millisecond for a small tree, longer once, when a hang is recognised: then
        the stacks are taken.
        """
        at = self._tree.clock()
        thorough = at >= self._next_thorough
        self._tree.look(at, thorough=thorough)
        self._count_transfers()
        gpu_busy = False
        if thorough:
            self._next_thorough = at + THOROUGH_EVERY
            self._check_rights()
            gpu_busy = self._gpu_is_busy()
        self._sample_memory(at, thorough=thorough)
        if self.hang is None:
            finding = self._recogniser.look(at, output_bytes, gpu_busy=gpu_busy)
            self.hang = self._report(finding, at) if finding else None

    @property
    def latest(self) -> MemorySample | None:
        """The newest sample of memory."""
        return self._series.latest

    def live(self) -> set[int]:
        """Ids of the processes alive now, orphans included."""
        self._tree.look(self._tree.clock(), thorough=True)
        return set(self._tree.alive)

    def evidence(self) -> Evidence:
        """All that was seen so far."""
        root = next((m for m in self._tree.members if m.pid == self._tree.root), None)
        ended = root.ended if root else None
        if self._tree.unlisted:
            self._missing[f"{self._tree.unlisted} processes, after very many, are not listed"] = (
                None
            )
        named = any(member.stat.name == WORKER_NAME for member in self._tree.members)
        return Evidence(
            wall=self._tree.clock() if ended is None else ended,
            cpu=max(0.0, self._tree.cpu() - sum(self._cpu_before.values())),
            memory=self._series.samples,
            processes=tuple(self._record(m, loader_names=named) for m in self._tree.members),
            missing=tuple(self._missing),
        )

    def _record(self, member: Member, *, loader_names: bool) -> ProcessRecord:
        before = self._cpu_before.get(member.pid, 0.0)
        return replace(
            _record(member, loader_names=loader_names), cpu=max(0.0, member.stat.cpu - before)
        )

    def end_everything(self) -> None:
        """See `end_everything`, the function."""
        end_tree(self._tree)

    def _report(self, finding: Finding, at: float) -> Hang | None:
        """The hang with the stacks, None where the stacks show that the parent will give up."""
        members = (finding.stuck + finding.parents)[:STACKS_AT_MOST]
        until = self._tree.clock() + STACKS_WITHIN
        waiting = tuple(self._describe(member, until) for member in members)
        if finding.gives_up and not _loader_polls(waiting):
            self._recogniser.doubt(at)
            return None
        return Hang(finding.kind, at, finding.last_sign_of_life, waiting)

    def _describe(self, member: Member, until: float) -> WaitingProcess:
        try:
            limit = until - self._tree.clock()
            stacks = take_stacks(member.pid, self._folder, self._inside, time_limit=limit)
        except StacksUnavailableError as error:
            self._missing[str(error)] = None
            stacks = ()
        return WaitingProcess(member.pid, member.role, stacks, _waits_for(member.pid))

    def _count_transfers(self) -> None:
        for member in self._tree.alive.values():
            moved = transfer_of(member.pid)
            if isinstance(moved, Denied):
                self._missing["bytes read and written: no right to read them"] = None
            elif moved:
                member.read, member.written = moved

    def _check_rights(self) -> None:
        main = self._tree.main
        if main and main.stat.state == "S":  # of a running process the kernel shows no call
            obstacle = waits.obstacle(main.pid)
            now = read_stat(f"/proc/{main.pid}")
            if obstacle and now and now.state == "S":
                self._missing[obstacle] = None

    def _sample_memory(self, at: float, *, thorough: bool) -> None:
        private, resident, workers = self._memory.sample(at, self._tree.alive.values())
        if not self._memory.exact:
            self._missing["private memory: estimated, no right to read it exactly"] = None
        if thorough:
            self._gpu_bytes = self._gpu_memory()
        self._series.add(MemorySample(at, private, resident, self._gpu_bytes, workers))

    def _gpu_memory(self) -> int | None:
        if self._gpu is None or self._gpu.absent:
            return None
        by_process = self._gpu.memory()
        total = 0
        for pid in self._tree.alive:
            if by_process is not None and pid in by_process:
                used = by_process[pid]
            else:
                used = None if uses_gpu(pid) else 0
            if used is None:
                self._missing["GPU memory by process: the driver does not tell it here"] = None
                return None
            total += used
        return total

    def _gpu_is_busy(self) -> bool:
        if self._gpu is None or self._gpu.absent:
            return False
        busy = self._gpu.busy(self._tree.alive)
        if busy is None:
            self._missing["GPU utilisation by process: the driver does not tell it here"] = None
        return bool(busy)


def end_everything(observer: Observer) -> None:
    """Kill the whole tree, orphans included, and wait until none of it lives.

    A process that is not of the tree is never touched. TimeoutError where one does not end.
    """
    observer.end_everything()


def _loader_polls(waiting: tuple[WaitingProcess, ...]) -> bool:
    return any(
        frame.function.endswith(LOADER_POLLS)
        for process in waiting
        for thread in process.threads
        for frame in thread.frames
    )


def _waits_for(pid: int) -> str:
    """What the process as a whole waits for: the first wait that is not for its own threads."""
    found = [thread.wait for thread in threads_now(pid) if thread.wait]
    outward = [wait for wait in found if wait.kind != "private lock"]
    first = next(iter(outward + found), waits.UNKNOWN)
    return waits.in_words(pid, first)


def _record(member: Member, *, loader_names: bool) -> ProcessRecord:
    """The record; where the loader names its workers, a forked process without the name is none.

    A program that is being started looks like its parent for a moment, between fork and exec.
    """
    anonymous = loader_names and member.stat.name != WORKER_NAME
    forked = member.role == "worker" and SPAWNED not in " ".join(member.command)
    return ProcessRecord(
        pid=member.pid,
        parent=member.parent,
        role="other" if anonymous and forked else member.role,
        command=member.command,
        name=member.stat.name,
        started=member.started,
        ended=member.ended,
        cpu=member.stat.cpu,
        read=member.read,
        written=member.written,
        peak_private=member.peak_private,
    )
