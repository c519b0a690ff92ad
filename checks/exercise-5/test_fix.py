"""Hidden checks of exercise 5.

A cure is told from a delay by the growth of memory over the second half of a long validation, as
seen from outside the attempt, against that of a trusted attempt beside it: a cure may still grow a
little, by fragmentation.
"""

from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import median

import numpy as np
import pytest

from gpulab.evidence import Attempt, Ended, Lab, fail, note, require_answer, require_finished
from gpulab.model import Device

SHIPPED_GROWTH = 4.25 * 1024  # bytes that the shipped script keeps of every row of a batch
TOLERATED = 0.04  # of that, beyond what the trusted attempt grew by
EXHAUSTED = ("OutOfMemoryError", "MemoryError")


@dataclass(frozen=True)
class Validation:
    """A validation of more and other batches than the script's, ours and the attendee's."""

    attempt: Attempt
    trusted: Attempt
    count: int
    rows: int
    device: Device

    @property
    def reached(self) -> int:
        """How many batches were asked for."""
        return sum(name == "batch" for _, name in self.attempt.marks)


def growth(attempt: Attempt, device: Device) -> float | None:
    """Bytes a batch over the second half of the batches; None: it did not come so far."""
    points, batches = [], 0
    for (begin, name), (end, _) in pairwise(attempt.marks):
        if name.startswith("rest"):
            used = used_between(attempt, begin, end)
            if device is Device.CUDA and not any(s.gpu for s in attempt.evidence.memory):
                used = int(name.split()[-1])  # the driver does not tell: torch's own count
            points += [(batches, used)] if used is not None else []
        batches += name == "batch"
    if len(points) < 3:
        return None
    # The median, for a heap that is grown or trimmed once is a step and not a slope.
    return median((y - v) / (x - u) for (u, v), (x, y) in combinations(points, 2))


def used_between(attempt: Attempt, begin: float, end: float) -> int | None:
    """The least memory, of host and GPU together, that was seen in that time."""
    seen = [sample for sample in attempt.evidence.memory if begin <= sample.at <= end]
    return min((sample.private + (sample.gpu or 0) for sample in seen), default=None)


def ran_out(attempt: Attempt) -> bool:
    """Whether memory was what ended it: the lab's cap, or torch's own complaint."""
    error = attempt.error
    return attempt.ended is Ended.MEMORY or (error is not None and error.type in EXHAUSTED)


@pytest.fixture(scope="module")
def validation(lab: Lab) -> Validation:
    """Fresh batches, more than the script has and of another size."""
    seed = int(lab.rng.integers(1 << 31))
    count, rows = int(lab.rng.integers(80, 88)), int(lab.rng.integers(7600, 8100))
    mine, trusted = lab.both("validate_then_train", seed, count, rows)
    return Validation(mine, trusted, count, rows, lab.device)


def test_memory_stays(validation: Validation) -> None:
    """Memory stays where it is, however many batches there are."""
    grown = growth(validation.attempt, validation.device)
    usual = growth(validation.trusted, validation.device)
    note(bytes_a_batch=grown, trusted_bytes_a_batch=usual, batches=validation.count)
    if ran_out(validation.attempt):
        fail("ran_out", batch=validation.reached, count=validation.count)
    require_finished(validation.attempt)
    if grown is None:
        fail("batches_left", batch=validation.reached, count=validation.count)
    if usual is None:
        raise RuntimeError("the trusted attempt was not seen at rest")
    if grown - max(usual, 0) > TOLERATED * SHIPPED_GROWTH * validation.rows:
        fail("climbs", mib=f"{grown / 2**20:.1f}")


@pytest.mark.after("test_memory_stays")
def test_same_history(validation: Validation) -> None:
    """The history holds the loss of every batch, in order, as a number."""
    history = require_answer(validation.attempt)["history"]
    if not isinstance(history, list) or not all(type(loss) is float for loss in history):
        fail("no_numbers")
    if len(history) != validation.count:
        fail("history_length", got=len(history), wanted=validation.count)
    wrong = ~np.isclose(history, validation.trusted.answer["history"], rtol=1e-3, atol=1e-5)
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
