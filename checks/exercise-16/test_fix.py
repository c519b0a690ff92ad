"""Hidden checks of exercise 16."""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from gpulab.evidence import Attempt, Lab, fail, note, require_answer, require_finished

EPOCHS, COUNT, LENGTH = 3, 96, 32
RANGES = np.array([[0.5, 1.5], [-1.0, 1.0]])  # of gain and offset
MISFIT = 1e-4  # of a view that is a gain times its pulse plus an offset
SAME = 5e-7  # ten times the error with which single-precision views give the draws away
CHANCE = 5  # draws that may come back: by chance one does in fewer than one training in ten
CENTRE, EDGE = 0.1, 0.1  # of a range: an even draw's mean is as near, and its ends are met
ALIKE = 0.6  # six times the spread that chance gives the correlation of two epochs

Epoch = dict[str, np.ndarray]


@dataclass(frozen=True)
class Inputs:
    """Pulses and seeds that nobody has seen before."""

    pulses: np.ndarray
    machines: np.ndarray
    seed: int
    other_seed: int

    def draws(self, shown: list[Epoch]) -> np.ndarray:
        """Gains and offsets (EPOCHS, COUNT, 2) by the pulse's number; fails on another view."""
        found = np.empty((EPOCHS, COUNT, 2))
        for index, epoch in enumerate(shown):
            for number, view in zip(epoch["numbers"], epoch["views"], strict=True):
                pulse = self.pulses[number]
                line = found[index, number] = np.polyfit(pulse.astype(float), view, 1)
                if not np.abs(np.polyval(line, pulse) - view).max() <= MISFIT:
                    fail("other_view")
        return found


@dataclass(frozen=True)
class Training:
    """One training, and what it showed."""

    inputs: Inputs
    attempt: Attempt

    @cached_property
    def shown(self) -> list[Epoch]:
        """For every epoch what was shown, in order."""
        return all_shown(self.attempt)

    @cached_property
    def draws(self) -> np.ndarray:
        """Gains and offsets (EPOCHS, COUNT, 2), by the pulse's number."""
        return self.inputs.draws(self.shown)


def all_shown(attempt: Attempt, training: int | None = None) -> list[Epoch]:
    """What a training showed; fails the check unless every epoch shows every pulse once."""
    answer = require_answer(attempt)
    if training is not None:
        answer = answer[training]
    if not isinstance(answer, list) or len(answer) != EPOCHS or not all(map(is_epoch, answer)):
        fail("answer_malformed")
    for number, epoch in enumerate(answer, 1):
        if missing := len(set(range(COUNT)) - set(epoch["numbers"].tolist())):
            fail("pulses_wrong", epoch=number, missing=missing, total=COUNT)
    return list(answer)


def is_epoch(answer: Any) -> bool:
    """Whether it is a dictionary of the brief's tensors."""
    shapes = {"numbers": (COUNT,), "processes": (COUNT,), "views": (COUNT, LENGTH)}
    return isinstance(answer, dict) and all(
        isinstance(answer.get(name), np.ndarray)
        and answer[name].shape == shape
        and answer[name].dtype.kind == ("f" if name == "views" else "i")
        for name, shape in shapes.items()
    )


@pytest.fixture(scope="module")
def inputs(lab: Lab) -> Inputs:
    """Fresh inputs, for all trainings of this check run."""
    seed, other_seed = lab.rng.choice(2**31, size=2, replace=False)
    pulses = lab.rng.normal(size=(COUNT, LENGTH)).astype(np.float32)
    return Inputs(pulses, lab.rng.integers(2, size=COUNT), int(seed), int(other_seed))


@pytest.fixture(scope="module")
def training(lab: Lab, inputs: Inputs) -> Training:
    """The training that is judged."""
    attempt = lab.call("train", inputs.pulses, inputs.machines, seed=inputs.seed, epochs=EPOCHS)
    return Training(inputs, attempt)


@pytest.fixture(scope="module")
def later(lab: Lab, inputs: Inputs) -> Attempt:
    """In another process: a training with another seed, then one with the first seed again."""
    return lab.probe(
        "trainings",
        [inputs.other_seed, inputs.seed],
        pulses=inputs.pulses,
        machines=inputs.machines,
        epochs=EPOCHS,
    )


def test_training_finishes(training: Training) -> None:
    """Training runs to its end."""
    require_finished(training.attempt)


@pytest.mark.after("test_training_finishes")
def test_every_pulse_once(training: Training) -> None:
    """Every pulse is shown once an epoch."""
    note(epochs=len(training.shown))


@pytest.mark.after("test_every_pulse_once")
def test_workers_deliver(training: Training) -> None:
    """At least two worker processes make views in each epoch."""
    seen = sum(process.role == "worker" for process in training.attempt.evidence.processes)
    note(workers_seen=seen)
    for number, epoch in enumerate(training.shown, 1):
        count = min(len(set(epoch["processes"].tolist())), seen)
        if count < 2:
            fail("too_few_workers", epoch=number, count=count)


@pytest.mark.after("test_every_pulse_once")
def test_even_draws(training: Training) -> None:
    """Gains and offsets are drawn evenly from their ranges."""
    for what, draws, (low, high) in zip(
        ("gain", "offset"), training.draws.reshape(-1, 2).T, RANGES, strict=True
    ):
        scaled = (draws - low) / (high - low)
        note(**{what: [draws.min(), draws.mean(), draws.max()]})
        even = abs(scaled.mean() - 0.5) < CENTRE and scaled.min() < EDGE < 1 - EDGE < scaled.max()
        if not even or scaled.min() < -MISFIT or scaled.max() > 1 + MISFIT:
            fail(f"{what}s_uneven", least=f"{draws.min():.2f}", most=f"{draws.max():.2f}")


@pytest.mark.after("test_even_draws")
def test_new_within_epoch(training: Training) -> None:
    """Within an epoch no draw comes twice."""
    for number, draws in enumerate(training.draws, 1):
        if (count := repeats(draws)) > CHANCE:
            fail("repeated_within", epoch=number, count=count, total=COUNT)


@pytest.mark.after("test_new_within_epoch")
def test_new_in_each_epoch(training: Training) -> None:
    """Each epoch brings new draws."""
    if (count := repeats(training.draws.reshape(-1, 2))) > CHANCE:
        fail("repeated_across", count=count, total=EPOCHS * COUNT)
    for first, second in combinations(range(EPOCHS), 2):
        if alike(training.draws[first], training.draws[second]):
            fail("epochs_alike", first=first + 1, second=second + 1)


@pytest.mark.after("test_new_in_each_epoch")
def test_seed_repeats(training: Training, later: Attempt) -> None:
    """The same seed shows the same views again."""
    again = all_shown(later, 1)
    for number, (first, second) in enumerate(zip(training.shown, again, strict=True), 1):
        if not np.array_equal(first["numbers"], second["numbers"]):
            fail("other_order", epoch=number)
        if not np.allclose(first["views"], second["views"], atol=MISFIT):
            fail("not_repeatable", epoch=number)


@pytest.mark.after("test_new_in_each_epoch")
def test_other_seed(training: Training, later: Attempt) -> None:
    """Another seed gives other draws."""
    other = training.inputs.draws(all_shown(later, 0))
    both = np.concatenate([training.draws, other]).reshape(-1, 2)
    if (count := repeats(both)) > CHANCE:
        fail("seed_ignored", count=count, total=EPOCHS * COUNT)


def repeats(draws: np.ndarray) -> int:
    """How many gains or offsets (whichever are more) come back among the draws (N, 2)."""
    gaps = np.diff(np.sort(draws, axis=0), axis=0)
    return int((gaps < SAME).sum(axis=0).max())


def alike(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether the draws of two epochs go together, pulse by pulse."""
    return any(
        abs(np.corrcoef(first[:, column], second[:, column])[0, 1]) > ALIKE for column in (0, 1)
    )
