"""Hidden checks of exercise 9."""

from typing import Any

import numpy as np
import pytest

from gpulab.evidence import Attempt, Lab, fail, note, require_answer, require_finished

SENSORS, STATES, BATCH = 4, 4, 32
TRIPS = range(70, 90)  # three batches
LENGTHS = range(5, 61)
SAME = 1e-3  # relative to the size of what is compared; single precision errs by some 1e-6
TOGETHER = 8  # calls of a layer for the loss and the scores of all trips; two are needed


@pytest.fixture(scope="module")
def judged(lab: Lab) -> tuple[Attempt, Attempt]:
    """Fresh weights and trips: what the attempt and the trusted one make of them."""
    lengths = lab.rng.choice(LENGTHS, size=lab.rng.choice(TRIPS))
    trips = [lab.rng.normal(2, 1.5, (n, SENSORS)).astype(np.float32) for n in lengths]
    states = [lab.rng.integers(STATES, size=n) for n in lengths]
    return lab.both("judge", int(lab.rng.integers(2**31)), trips, states)


def answers(judged: tuple[Attempt, Attempt]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answers of the attempt and of the trusted one."""
    return require_answer(judged[0]), require_answer(judged[1])


def test_scores_of_each_trip(judged: tuple[Attempt, Attempt]) -> None:
    """A trip's scores do not depend on the trips beside it."""
    mine, trusted = answers(judged)
    if odd := mine["gradients"].keys() ^ trusted["gradients"].keys():
        fail("parts_changed", names=", ".join(sorted(odd)))
    if len(mine["scores"]) != len(trusted["scores"]):
        fail("trips_missing", found=len(mine["scores"]), wanted=len(trusted["scores"]))
    pairs = list(zip(mine["scores"], trusted["scores"], strict=True))
    for scores, wanted in pairs:
        if np.shape(scores) != wanted.shape:
            fail("shape_differs", found=list(np.shape(scores)), wanted=list(wanted.shape))
    count = sum(differs(scores, wanted) for scores, wanted in pairs)
    if count:
        fail("scores_differ", count=count, total=len(pairs))


@pytest.mark.after("test_scores_of_each_trip")
def test_loss_of_all_steps(judged: tuple[Attempt, Attempt]) -> None:
    """The loss is the mean over the steps of all trips, each counted once."""
    mine, trusted = (answer["loss"] for answer in answers(judged))
    note(loss=mine, expected_loss=trusted)
    if not np.isclose(mine, trusted, rtol=SAME):
        fail("loss_differs", found=f"{mine:.4f}", wanted=f"{trusted:.4f}")


@pytest.mark.after("test_loss_of_all_steps")
def test_right_gradients(judged: tuple[Attempt, Attempt]) -> None:
    """Every part of the model learns from that loss."""
    mine, trusted = (answer["gradients"] for answer in answers(judged))
    # Beside all of them: a softmax does not change with the keys' bias, whose gradient is rounding.
    size = float(np.sqrt(sum(np.square(part).sum() for part in trusted.values())))
    if odd := [name for name, wanted in trusted.items() if differs(mine[name], wanted, size)]:
        fail("gradients_differ", names=", ".join(odd))


@pytest.mark.after("test_loss_of_all_steps")
def test_together(judged: tuple[Attempt, Attempt]) -> None:
    """The trips of a batch go through the model together."""
    mine, trusted = answers(judged)
    note(most_calls_of_a_layer=mine["calls"])
    if mine["calls"] > TOGETHER:
        fail("one_by_one", count=mine["calls"], trips=len(trusted["scores"]))


@pytest.mark.after("test_loss_of_all_steps")
def test_steps_of_an_epoch(judged: tuple[Attempt, Attempt]) -> None:
    """An epoch takes one step for each 32 trips."""
    mine, trusted = answers(judged)
    if mine["steps"] != trusted["steps"]:
        count = len(trusted["scores"])
        fail("steps_differ", found=mine["steps"], wanted=trusted["steps"], trips=count)


@pytest.mark.after("test_loss_of_all_steps")
def test_script_runs(lab: Lab) -> None:
    """`python train.py` runs to its end."""
    require_finished(lab.run())


def differs(found: np.ndarray | None, wanted: np.ndarray, size: float | None = None) -> bool:
    """Whether values differ in more than rounding, beside `size` or their own; NaN does."""
    if found is None or found.shape != wanted.shape:
        return True
    return not bool(np.linalg.norm(found - wanted) <= SAME * (size or np.linalg.norm(wanted)))
