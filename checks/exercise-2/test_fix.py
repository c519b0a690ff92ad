"""Hidden checks of exercise 2."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpulab.evidence import Attempt, Lab, fail, note, require_answer, require_finished

ROWS, SENSORS, STATES = 96, 12, 4
SAME = 1e-3  # relative to the size of what is compared; single precision errs by some 1e-6
NOTHING = 1e-6  # of the size that was expected

Parts = dict[str, np.ndarray | None]


@pytest.fixture(scope="module")
def batch(lab: Lab) -> dict[str, Any]:
    """Weights (by their seed), readings and states that nobody has seen before."""
    return {
        "seed": int(lab.rng.integers(2**31)),
        "readings": lab.rng.normal(size=(ROWS, SENSORS)).astype(np.float32),
        "states": lab.rng.integers(STATES, size=ROWS),
    }


@pytest.fixture(scope="module")
def learnt(lab: Lab, batch: dict[str, Any]) -> tuple[Attempt, Attempt]:
    """Loss and gradients on the fresh batch: the attempt's and the trusted ones."""
    return lab.both("gradients", **batch)


def test_script_runs(lab: Lab) -> None:
    """`python train.py` runs to its end."""
    require_finished(lab.run())


def test_same_loss(learnt: tuple[Attempt, Attempt]) -> None:
    """Model and loss are the ones of the brief."""
    mine, trusted = (require_answer(attempt) for attempt in learnt)
    if odd := mine["gradients"].keys() ^ trusted["gradients"].keys():
        fail("parts_changed", names=", ".join(sorted(odd)))
    note(loss=mine["loss"], expected_loss=trusted["loss"])
    if not np.isclose(mine["loss"], trusted["loss"], rtol=SAME):
        fail("loss_changed", found=f"{mine['loss']:.4f}", wanted=f"{trusted['loss']:.4f}")


@pytest.mark.after("test_same_loss")
def test_every_part_learns(learnt: tuple[Attempt, Attempt]) -> None:
    """The loss reaches every part of the model."""
    if names := compare(*gradients(learnt), is_nothing):
        fail("no_gradient", names=names)


@pytest.mark.after("test_every_part_learns")
def test_right_gradients(learnt: tuple[Attempt, Attempt]) -> None:
    """Each part learns from the whole loss."""
    if names := compare(*gradients(learnt), differs):
        fail("other_gradient", names=names)


@pytest.mark.after("test_right_gradients")
def test_training_follows(lab: Lab, batch: dict[str, Any]) -> None:
    """An epoch moves every part as its gradient says."""
    mine, trusted = (require_answer(attempt) for attempt in lab.both("changes", **batch))
    if names := compare(mine, trusted, differs):
        fail("other_step", names=names)


def gradients(learnt: tuple[Attempt, Attempt]) -> tuple[Parts, Parts]:
    """The gradients of the attempt and of the trusted one."""
    return learnt[0].answer["gradients"], learnt[1].answer["gradients"]


def compare(
    mine: Parts, trusted: Parts, odd: Callable[[np.ndarray | None, np.ndarray], bool]
) -> str:
    """The names of the parameters that are `odd`, as a list in words."""
    return ", ".join(
        name for name, part in trusted.items() if part is not None and odd(mine[name], part)
    )


def is_nothing(part: np.ndarray | None, wanted: np.ndarray) -> bool:
    """Whether a part is absent, or zero beside what was expected."""
    return part is None or bool(np.linalg.norm(part) <= NOTHING * np.linalg.norm(wanted))


def differs(part: np.ndarray | None, wanted: np.ndarray) -> bool:
    """Whether a part differs in direction or size."""
    if part is None or part.shape != wanted.shape:
        return True
    return not bool(np.linalg.norm(part - wanted) <= SAME * np.linalg.norm(wanted))
