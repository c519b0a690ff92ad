"""Random numbers: a draw is keyed by the CUDA generator's seed and offset, which then move on.

So seeds, states and their restoration behave as on a GPU; the numbers are not a GPU's.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

_OFFSET_STEP = 4  # CUDA's offsets are multiples of four
_MIX = 0x9E3779B97F4A7C15
_SEED_MASK = (1 << 63) - 1


def _draw_seed(cuda: torch.Generator) -> int:
    offset = cuda.get_offset()
    cuda.set_offset(offset + _OFFSET_STEP)
    return int((cuda.initial_seed() * _MIX + offset) & _SEED_MASK)


def cpu_generator(cuda: torch.Generator | None = None) -> torch.Generator:
    """Return a CPU generator for one draw from `cuda`, the device's default generator if None."""
    source = torch.cuda.default_generators[0] if cuda is None else cuda
    return torch.Generator().manual_seed(_draw_seed(source))


@contextlib.contextmanager
def default_generator_seeded() -> Iterator[None]:
    """Seed the CPU's default generator for one draw, for operators that take no generator."""
    state = torch.get_rng_state()
    torch.default_generator.manual_seed(_draw_seed(torch.cuda.default_generators[0]))
    try:
        yield
    finally:
        torch.set_rng_state(state)
