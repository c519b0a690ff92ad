"""The memory of a tree over time.

Exact figures cost the kernel some milliseconds per process of a usual size, so they are read one
process at a time and within a budget; between two readings private memory follows the growth of
the process's anonymous memory, which costs nothing.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from gpulab.observe.model import MemorySample
from gpulab.observe.proc import Denied, pages_of, private_memory_of
from gpulab.observe.tree import Member

LONGEST = 4000
SHARE_OF_TIME = 0.05  # for exact readings, at most


class MemorySeries:
    """Samples in the order of time; when they grow many, neighbours are merged, peaks kept."""

    def __init__(self) -> None:
        self._samples: list[MemorySample] = []

    def add(self, sample: MemorySample) -> None:
        """Append one sample."""
        self._samples.append(sample)
        if len(self._samples) > LONGEST:
            pairs = zip(self._samples[:-1:2], self._samples[1::2], strict=True)
            self._samples = [_merge(*pair) for pair in pairs] + [sample]

    @property
    def latest(self) -> MemorySample | None:
        """The newest sample."""
        return self._samples[-1] if self._samples else None

    @property
    def samples(self) -> tuple[MemorySample, ...]:
        """What is left of the series, the peaks among it."""
        return tuple(self._samples)


def _merge(one: MemorySample, other: MemorySample) -> MemorySample:
    known = [sample.gpu for sample in (one, other) if sample.gpu is not None]
    return MemorySample(
        at=one.at,
        private=max(one.private, other.private),
        resident=max(one.resident, other.resident),
        gpu=max(known, default=None),
        workers=max(one.workers, other.workers),
    )


@dataclass
class _Reading:
    """Private bytes as the kernel told them `at`, and the anonymous bytes and faults then."""

    at: float
    private: int
    anonymous: int
    faults: int


class TreeMemory:
    """Private and resident memory of the processes of a tree, each page counted where it is."""

    def __init__(self) -> None:
        self.exact = True  # False once an exact reading was refused
        self._readings: dict[Member, _Reading] = {}
        self._next_exact = 0.0

    def sample(self, at: float, members: Iterable[Member]) -> tuple[int, int, int]:
        """Private and resident bytes of all the processes, and private ones of the workers.

        Sets their `peak_private`.
        """
        sizes = {m: pages for m in members if (pages := pages_of(m.pid))}
        self._readings = {m: r for m, r in self._readings.items() if m in sizes}
        due = self._most_due(at, sizes)
        if due:
            sizes[due] = self._read(due, at) or sizes[due]
        private = workers = 0
        for member, (anonymous, resident) in sizes.items():
            reading = self._readings.get(member)
            if reading:
                grown = reading.private + anonymous - reading.anonymous
                estimate = min(max(0, grown), resident)
                member.peak_private = max(member.peak_private, estimate)
                private += estimate
                workers += estimate if member.role == "worker" else 0
        return private, sum(resident for _, resident in sizes.values()), workers

    def _most_due(self, at: float, members: Iterable[Member]) -> Member | None:
        """A process never read yet, or, when there is time, the one read longest ago.

        Without a page fault since, nothing has changed.
        """
        stale = None
        for member in members:
            reading = self._readings.get(member)
            if reading is None:
                return member
            if reading.faults != member.stat.faults and (stale is None or reading.at < stale[0]):
                stale = reading.at, member
        return stale[1] if stale and at >= self._next_exact else None

    def _read(self, member: Member, at: float) -> tuple[int, int] | None:
        """Read it exactly; its anonymous and resident bytes after that."""
        begin = time.monotonic()
        private = private_memory_of(member.pid)
        # After the walk: what grew meanwhile would else be counted a second time, as growth since.
        pages = pages_of(member.pid)
        anonymous = pages[0] if pages else 0
        if isinstance(private, Denied):
            self.exact = False
            private = anonymous
        if private is not None:
            self._readings[member] = _Reading(at, private, anonymous, member.stat.faults)
        self._next_exact = at + (time.monotonic() - begin) / SHARE_OF_TIME
        return pages
