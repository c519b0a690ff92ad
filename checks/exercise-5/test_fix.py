"""Hidden checks of exercise 5.

A cure is told from a delay by the growth of memory over the second half of a long validation, as
seen from outside the attempt, against the least that a graph would keep of every batch.
"""

from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import median

import numpy as np
import pytest

from gpulab.evidence import Attempt, Ended, Lab, fail, note, require_answer, require_finished
from gpulab.model import Device

LEAST_KEPT = 256  # bytes of every row: the last layer's input, the least that a graph holds on to
TOLERATED = LEAST_KEPT / 3
FEWEST_RESTS = 4
EXHAUSTED = ("OutOfMemoryError", "MemoryError")


@dataclass(frozen=True)
class Validation:
    """A validation of more and other batches than the script's, ours and the attendee's."""

    attempt: Attempt
    seed: int
    count: int
    rows: int
    device: Device

    @property
    def reached(self) -> int:
        """How many batches were asked for."""
        return sum(name == "batch" for _, name in self.attempt.marks)


def growth(attempt: Attempt, device: Device) -> float | None:
    """Bytes a batch over the second half of the batches; None: too few rests were seen."""
    points, batches = [], 0
    for (begin, name), (end, _) in pairwise(attempt.marks):
        if name.startswith("rest"):
            told = int(name.split()[-1]) if device is Device.CUDA else 0
            used = used_between(attempt, begin, end, told)
            points += [(batches, used)] if used is not None else []
        batches += name == "batch"
    if len(points) < FEWEST_RESTS:
        return None
    # The median, for a heap that is grown or trimmed once is a step and not a slope.
    return median((y - v) / (x - u) for (u, v), (x, y) in combinations(points, 2))


def used_between(attempt: Attempt, begin: float, end: float, told: int) -> int | None:
    """The least memory, of host and GPU together, that was seen in that time.

    `told` is torch's own count of GPU memory, for where the driver does not tell.
    """
    seen = [sample for sample in attempt.evidence.memory if begin <= sample.at <= end]
    used = [sample.private + (told if sample.gpu is None else sample.gpu) for sample in seen]
    return min(used, default=None)


def ran_out(attempt: Attempt) -> bool:
    """Whether memory was what ended it: the lab's cap, or torch's own complaint."""
    error = attempt.error
    return attempt.ended is Ended.MEMORY or (error is not None and error.type in EXHAUSTED)


@pytest.fixture(scope="module")
def validation(lab: Lab) -> Validation:
    """Fresh batches, more than the script has and of another size."""
    seed = int(lab.rng.integers(1 << 31))
    count, rows = int(lab.rng.integers(58, 63)), int(lab.rng.integers(10600, 11100))
    attempt = lab.probe("validate_then_train", seed, count, rows)
    return Validation(attempt, seed, count, rows, lab.device)


def test_memory_stays(validation: Validation) -> None:
    """Memory stays where it is, however many batches there are."""
    grown = growth(validation.attempt, validation.device)
    note(bytes_a_batch=grown, batches=validation.count, rows=validation.rows)
    if ran_out(validation.attempt):
        fail("ran_out", batch=validation.reached, count=validation.count)
    require_finished(validation.attempt)
    if validation.reached < validation.count:
        fail("batches_left", batch=validation.reached, count=validation.count)
    if grown is None:
        raise RuntimeError("the attempt was hardly seen at rest")
    if grown > TOLERATED * validation.rows:
        fail("climbs", mib=f"{grown / 2**20:.1f}")


@pytest.mark.after("test_memory_stays")
def test_same_history(lab: Lab, validation: Validation) -> None:
    """The history holds the loss of every batch, in order, as a number."""
    history = require_answer(validation.attempt)["history"]
    if not isinstance(history, list) or not all(type(loss) is float for loss in history):
        fail("no_numbers")
    if len(history) != validation.count:
        fail("history_length", got=len(history), wanted=validation.count)
    trusted = lab.reference("right_history", validation.seed, validation.count, validation.rows)
    wrong = ~np.isclose(history, trusted.answer, rtol=1e-3, atol=1e-5)
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


@pytest.mark.after("test_same_history", "test_training_goes_on")
def test_script_finishes(lab: Lab) -> None:
    """The script trains and validates both epochs."""
    require_finished(lab.run())
