"""Who else holds GPU memory while an attempt runs, and whether the attempt gave its own back."""

from __future__ import annotations

import os
import time
from collections.abc import Collection

from gpulab.observe import Gpu

BACK_WITHIN = 5.0  # seconds after the last process ended; the driver takes some tenths


class GpuMemory:
    """The memory of the GPUs that an attempt may use.

    Attributes:
        others: bytes that other processes held when this object was made, at least one for a
            process of which the driver does not tell; None where it lists no processes.
    """

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        held = gpu.memory(self._visible)
        self.others = None if held is None else sum(_bytes(used) for used in held.values())

    def left_by(self, pids: Collection[int]) -> int:
        """Bytes that processes, all of which have ended, still hold after BACK_WITHIN seconds."""
        deadline = time.monotonic() + BACK_WITHIN
        while True:
            held = self._gpu.memory(self._visible) or {}
            left = sum(_bytes(held[pid]) for pid in pids if pid in held)
            if left == 0 or time.monotonic() > deadline:
                return left
            time.sleep(0.05)


def _bytes(used: int | None) -> int:
    return 1 if used is None else used
