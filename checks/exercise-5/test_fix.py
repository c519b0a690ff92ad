"""Hidden checks of exercise 5.

A cure is told from a delay by the growth of memory over the second half of a long validation, as
seen from outside the attempt: a cure may still grow a little, by fragmentation.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from gpulab.evidence import Attempt, Ended, Lab, fail, note, require_answer, require_finished
from gpulab.model import Device

SHIPPED_GROWTH = 4.25 * 1024  # bytes that the shipped script keeps of every row of a batch
TOLERATED = 0.02  # of that
EXHAUSTED = ("OutOfMemoryError", "MemoryError")


@dataclass(frozen=True)
class Validation:
    """A validation of more and other batches than the script's, ours and the attendee's."""

    attempt: Attempt
    trusted: Any
    count: int
    rows: int
    device: Device

    def growth(self) -> float | None:
        """Bytes a batch over the second half of what it came to; None: it was too short."""
        batches = np.array([at for at, name in self.attempt.marks if name != "validated"])
        ends = [at for at, name in self.attempt.marks if name == "validated"]
        if len(batches) < 8:
            return None
        if self.device is Device.CUDA and not self._sees_gpu_memory():
            used = [float(name) for _, name in self.attempt.marks if name != "validated"]
            return slope(np.arange(len(used)), np.array(used))
        last = ends[0] if ends else self.attempt.evidence.wall
        moments = np.append(batches, last)
        series = [s for s in self.attempt.evidence.memory if batches[0] <= s.at <= last]
        if len(series) < 4:
            return None
        at = np.interp([s.at for s in series], moments, np.arange(len(moments)))
        return slope(at, np.array([s.private + (s.gpu or 0) for s in series], dtype=float))

    def _sees_gpu_memory(self) -> bool:
        return any(sample.gpu for sample in self.attempt.evidence.memory)


def slope(batch: np.ndarray, used: np.ndarray) -> float:
    """Growth a batch over the second half, by the line of best fit."""
    late = batch >= batch[-1] / 2
    return float(np.polyfit(batch[late], used[late], 1)[0])


def ran_out(attempt: Attempt) -> bool:
    """Whether memory was what ended it: the lab's cap, or torch's own complaint."""
    error = attempt.error
    return attempt.ended is Ended.MEMORY or (error is not None and error.type in EXHAUSTED)


@pytest.fixture(scope="module")
def validation(lab: Lab) -> Validation:
    """Fresh batches, more than the script has and of another size."""
    seed = int(lab.rng.integers(1 << 31))
    count, rows = int(lab.rng.integers(60, 68)), int(lab.rng.integers(7000, 8000))
    mine, trusted = lab.both("validate_then_train", seed, count, rows)
    return Validation(mine, trusted.answer, count, rows, lab.device)


def test_memory_stays(validation: Validation) -> None:
    """Memory stays where it is, however many batches there are."""
    growth = validation.growth()
    note(growth_mib=growth and round(growth / 2**20, 2), batches=validation.count)
    said = "?" if growth is None else f"{growth / 2**20:.1f}"
    if ran_out(validation.attempt):
        reached = sum(name != "validated" for _, name in validation.attempt.marks)
        fail("ran_out", batch=reached, count=validation.count, mib=said)
    require_finished(validation.attempt)
    if growth is not None and growth > TOLERATED * SHIPPED_GROWTH * validation.rows:
        fail("climbs", mib=said)


@pytest.mark.after("test_memory_stays")
def test_same_history(validation: Validation) -> None:
    """The history holds the loss of every batch, in order, as a number."""
    history = require_answer(validation.attempt)["history"]
    if not isinstance(history, list) or not all(type(loss) is float for loss in history):
        fail("no_numbers")
    if len(history) != validation.count:
        fail("history_length", got=len(history), wanted=validation.count)
    wrong = ~np.isclose(history, validation.trusted["history"], rtol=1e-3, atol=1e-5)
    if wrong.any():
        fail("history_differs", count=int(wrong.sum()), total=validation.count)


@pytest.mark.after("test_memory_stays")
def test_training_goes_on(validation: Validation) -> None:
    """After a validation the model trains as before."""
    answer = require_answer(validation.attempt)
    if answer["problem"]:
        fail("cannot_train", error=answer["problem"])
    if answer["trained"] != answer["parameters"]:
        fail("not_trained", trained=answer["trained"], parameters=answer["parameters"])
    if not answer["training"]:
        fail("left_in_eval")


@pytest.mark.after("test_memory_stays")
def test_script_finishes(lab: Lab) -> None:
    """The script trains and validates both epochs."""
    require_finished(lab.run())
