"""Hidden checks of exercise 13."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from gpulab.evidence import Attempt, Lab, fail, note, require_answer, require_finished

READINGS, HIDDEN = 4, 16
RATE, MAX_NORM = 0.5, 1.0
USUAL, SKIPPED = 12, 4  # steps of a usual run, and how many of them may be left out
LONG, LONG_SKIPPED = 40, 20  # the same with targets of thousands, and where the scale must adapt
SAME = 0.1  # of the way that full precision goes

Weights = dict[str, np.ndarray]
Part = Callable[[Weights], np.ndarray]


def flat(weights: Weights) -> np.ndarray:
    """All weights in one vector."""
    return np.concatenate([weights[name].ravel() for name in sorted(weights)])


def rise(weights: Weights) -> np.ndarray:
    """The weights that the temperature rise learns with: all but those of the displacement."""
    of_rise = {
        name: part[:1] if name.startswith("head") else part for name, part in weights.items()
    }
    return flat(of_rise)


def displacement(weights: Weights) -> np.ndarray:
    """The weights of the displacement alone."""
    return np.append(weights["head.weight"][1], weights["head.bias"][1])


def gradient(weights: Weights, readings: np.ndarray, targets: np.ndarray) -> Weights:
    """The gradient of the mean squared error, of norm MAX_NORM at most."""
    hidden = np.tanh(readings @ weights["encoder.weight"].T + weights["encoder.bias"])
    predicted = hidden @ weights["head.weight"].T + weights["head.bias"]
    back = 2 * (predicted - targets) / targets.size
    below = (back @ weights["head.weight"]) * (1 - hidden**2)
    parts = {
        "encoder.weight": below.T @ readings,
        "encoder.bias": below.sum(axis=0),
        "head.weight": back.T @ hidden,
        "head.bias": back.sum(axis=0),
    }
    shrink = min(1.0, MAX_NORM / float(np.linalg.norm(flat(parts))))
    return {name: shrink * part for name, part in parts.items()}


@dataclass(frozen=True)
class Trial:
    """One batch, repeated, and the way that full precision goes: the weights after each step."""

    readings: np.ndarray
    targets: np.ndarray
    way: list[Weights]

    def off(self, part: Part, end: Weights, skipped: int) -> float:
        """How far an end is from the way's last `skipped` steps, in parts of the whole way."""
        start, goal = part(self.way[0]), part(self.way[-1])
        nearest = min(np.linalg.norm(part(end) - part(at)) for at in self.way[-skipped - 1 :])
        return float(nearest / np.linalg.norm(goal - start))

    def moved(self, part: Part, end: Weights) -> str:
        """How far a part was moved, in words: as a share of what full precision moves it."""
        start, goal = part(self.way[0]), part(self.way[-1])
        share = np.linalg.norm(part(end) - start) / np.linalg.norm(goal - start)
        return f"{100 * share:.3g} %"


def draw(rng: np.random.Generator, weights: Weights, rows: int, kelvin: float, steps: int) -> Trial:
    """Readings and targets that nobody has seen before."""
    readings = rng.normal(size=(rows, READINGS)).astype(np.float32)
    heat, push = rng.normal(size=(2, READINGS))
    targets = np.stack(
        [kelvin * np.sin(readings @ heat + 0.5), 1e-5 * np.tanh(readings @ push)], axis=1
    ).astype(np.float32)
    way = [{name: part.astype(np.float64) for name, part in weights.items()}]
    for _ in range(steps):
        downhill = gradient(way[-1], readings, targets)
        way.append({name: part - RATE * downhill[name] for name, part in way[-1].items()})
    return Trial(readings, targets, way)


@dataclass(frozen=True)
class Training:
    """The usual run, the long one, and the attempt at both."""

    usual: Trial
    long: Trial
    attempt: Attempt

    def answer(self, number: int) -> Any:
        """What the attempt answers for trial `number`."""
        answer = require_answer(self.attempt)
        if "odd" in answer:
            fail("parts_changed", names=", ".join(answer["odd"]))
        return answer["trials"][number]


@pytest.fixture(scope="module")
def training(lab: Lab) -> Training:
    """Training from fresh weights on fresh batches, usual ones and such as need another scale."""
    rng = lab.rng
    weights = {
        "encoder.weight": 0.5 * rng.normal(size=(HIDDEN, READINGS)),
        "encoder.bias": 0.5 * rng.normal(size=HIDDEN),
        "head.weight": np.stack([0.2 * rng.normal(size=HIDDEN), 1e-6 * rng.normal(size=HIDDEN)]),
        "head.bias": np.zeros(2),
    }
    weights = {name: part.astype(np.float32) for name, part in weights.items()}
    usual = draw(rng, weights, rows=8192, kelvin=0.5, steps=USUAL)
    long = draw(rng, weights, rows=512, kelvin=5000, steps=LONG)
    trials = [[usual.readings, usual.targets, USUAL], [long.readings, long.targets, LONG]]
    return Training(usual, long, lab.probe("trained", weights, trials))


def test_half_precision(training: Training) -> None:
    """The linear layers compute in float16."""
    for number in (0, 1):
        if (kinds := training.answer(number)["kinds"]) != ["float16"]:
            fail("other_precision", kinds=", ".join(kinds) or "-")


@pytest.mark.after("test_half_precision")
def test_rise_learns(training: Training) -> None:
    """The temperature rise is learnt as in full precision."""
    require_same(training.usual, rise, training.answer(0)["weights"], "rise_differs")


@pytest.mark.after("test_half_precision")
def test_displacement_learns(training: Training) -> None:
    """The displacement is learnt as in full precision."""
    end = training.answer(0)["weights"]
    require_same(training.usual, displacement, end, "displacement_differs")


@pytest.mark.after("test_displacement_learns")
def test_thousands(training: Training) -> None:
    """Targets of thousands are learnt as in full precision, but for a few steps."""
    end = training.answer(1)["weights"]
    if not np.isfinite(flat(end)).all():
        fail("not_finite")
    off = training.long.off(flat, end, LONG_SKIPPED)
    note(off_thousands=off)
    if off > SAME:
        fail("thousands_differ", moved=training.long.moved(flat, end), steps=LONG)


@pytest.mark.after("test_displacement_learns")
def test_script_runs(lab: Lab) -> None:
    """`python train.py` runs to its end."""
    require_finished(lab.run())


def require_same(trial: Trial, part: Part, end: Weights, rationale: str) -> None:
    """Fail unless a part of the weights went the way of full precision."""
    off = trial.off(part, end, SKIPPED)
    note(**{f"off_{part.__name__}": off})
    if not off <= SAME:
        fail(rationale, moved=trial.moved(part, end))
