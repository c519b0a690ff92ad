"""The memory of a tree over time."""

from gpulab.observe.model import MemorySample

LONGEST = 4000


class MemorySeries:
    """Samples in the order of time; when they grow many, neighbours are merged, peaks kept."""

    def __init__(self) -> None:
        self._samples: list[MemorySample] = []

    def add(self, sample: MemorySample) -> None:
        """Append one sample."""
        self._samples.append(sample)
        if len(self._samples) > LONGEST:
            self._samples = [_merge(*self._samples[i : i + 2]) for i in range(0, LONGEST, 2)] + [
                sample
            ]

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
    )
