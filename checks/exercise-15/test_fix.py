"""Hidden checks of exercise 15."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gpulab.evidence import Attempt, Lab, fail, note, require_answer, require_finished

TRAINING, VALIDATION, FEATURES = 256, 512, 20
ONWARD = 2
SAME = 1e-3

Course = dict[str, Any]


def draw(rng: np.random.Generator, count: int) -> list[np.ndarray]:
    """Bearings that nobody has seen; the label is wrong in one case of five."""
    features = rng.normal(size=(count, FEATURES)).astype(np.float32)
    worn = features[:, 0] + features[:, 1] * features[:, 2] + features[:, 3] > 0
    return [features, (worn ^ (rng.random(count) < 0.2)).astype(np.int64)]


@pytest.fixture(scope="module")
def courses(lab: Lab) -> tuple[Attempt, Attempt]:
    """Training, loading and going on, on the CPU and on the GPU: the attempt's and ours."""
    return lab.both(
        "courses",
        ["cpu"] if lab.device == "cpu" else ["cpu", "cuda"],
        seed=int(lab.rng.integers(2**31)),
        epochs=int(lab.rng.integers(18, 25)),
        onward=ONWARD,
        data=draw(lab.rng, TRAINING) + draw(lab.rng, VALIDATION),
    )


def each(courses: tuple[Attempt, Attempt]) -> Iterator[tuple[str, Course, Course]]:
    """For each device the attempt's course and the trusted one."""
    mine = require_answer(courses[0])
    for device, trusted in courses[1].answer.items():
        yield device, mine[device], trusted


def same(found: Any, wanted: Any) -> bool:
    """Whether losses are equal but for rounding."""
    return np.shape(found) == np.shape(wanted) and np.allclose(found, wanted, rtol=SAME)


def test_every_epoch(courses: tuple[Attempt, Attempt]) -> None:
    """Training goes through all epochs, and their losses are what they were."""
    for device, mine, trusted in each(courses):
        found, wanted = mine["history"], trusted["history"]
        note(**{f"history_{device}": found})
        if len(found) != len(wanted):
            fail("epochs_missing", device=device, found=len(found), wanted=len(wanted))
        if not same(found, wanted):
            fail("training_changed", device=device)


@pytest.mark.after("test_every_epoch")
def test_best_epoch_named(courses: tuple[Attempt, Attempt]) -> None:
    """The checkpoint names the epoch with the lowest loss."""
    for device, mine, trusted in each(courses):
        if mine["epoch"] != trusted["epoch"] or not same(mine["loss"], trusted["loss"]):
            fail("other_epoch", device=device, found=mine["epoch"], wanted=trusted["epoch"])


@pytest.mark.after("test_best_epoch_named")
def test_weights_of_the_best(courses: tuple[Attempt, Attempt]) -> None:
    """A model loaded from the checkpoint has the loss of the best epoch."""
    for device, mine, trusted in each(courses):
        if "refused" in mine:
            fail("refused", device=device, error=mine["refused"][:300])
        if not same(mine["restored"], trusted["loss"]):
            found, wanted = (f"{loss:.4f}" for loss in (mine["restored"], trusted["loss"]))
            fail("other_weights", device=device, found=found, wanted=wanted)


@pytest.mark.after("test_weights_of_the_best")
def test_training_resumes(courses: tuple[Attempt, Attempt]) -> None:
    """Training that resumes from the checkpoint takes the course it took."""
    for device, mine, trusted in each(courses):
        following = trusted["epoch"] + 1
        wanted = trusted["history"][following : following + ONWARD]
        if not same(mine["onward"], wanted):
            found, wanted = (
                ", ".join(f"{loss:.4f}" for loss in losses) for losses in (mine["onward"], wanted)
            )
            fail("other_course", device=device, found=found, wanted=wanted)


@pytest.mark.after("test_weights_of_the_best")
def test_script_runs(lab: Lab) -> None:
    """`python train.py` runs to its end."""
    require_finished(lab.run())
