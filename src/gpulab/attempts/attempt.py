"""What is known of an attempt once it has ended."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gpulab.observe import Evidence, Hang

OUT_OF_GPU_MEMORY = re.compile(
    r"CUDA out of memory|CUDA error: out of memory|CUBLAS_STATUS_ALLOC_FAILED"
)


class Ended(StrEnum):
    """How an attempt came to its end."""

    EXIT = "exit"
    HANG = "hang"
    TIME_OUT = "time-out"
    MEMORY = "memory"
    FLOOD = "flood"


@dataclass(frozen=True)
class Limits:
    """Bounds of one attempt. `memory` is the private memory of its whole process tree."""

    seconds: float = 60.0
    output_bytes: int = 4 << 20
    lines: int = 20_000
    answer_bytes: int = 256 << 20
    memory: int | None = None


@dataclass(frozen=True)
class Line:
    """One line of output and when it came (seconds since the start)."""

    at: float
    stream: str  # "stdout" or "stderr"
    text: str


@dataclass(frozen=True)
class Failure:
    """The exception that ended an attempt's function; `file` is relative to the work folder."""

    type: str
    message: str
    file: str | None = None
    line: int | None = None
    source: str | None = None


@dataclass(frozen=True)
class Attempt:
    """One run of the attendee's code: what it printed, answered and cost."""

    ended: Ended
    exit_code: int | None
    lines: tuple[Line, ...]
    evidence: Evidence
    answer: Any = None
    answered: bool = False
    error: Failure | None = None
    marks: tuple[tuple[float, str], ...] = ()
    hang: Hang | None = None
    broken_answer: str | None = None  # why what it answered could not be read
    left_running: int = 0  # processes that it left behind
    gpu_others: int | None = None  # bytes of GPU memory that others held when it began
    gpu_left: int | None = None  # bytes of GPU memory that it did not give back

    @property
    def short_of_gpu_memory(self) -> bool:
        """Whether it failed for want of GPU memory, as far as it says itself."""
        if self.error is not None:
            return bool(OUT_OF_GPU_MEMORY.search(f"{self.error.type}: {self.error.message}"))
        return bool(self.exit_code) and bool(OUT_OF_GPU_MEMORY.search(self.output("stderr")))

    def output(self, stream: str | None = None) -> str:
        """Everything printed, or one stream of it."""
        return "\n".join(line.text for line in self.lines if stream in (None, line.stream))
