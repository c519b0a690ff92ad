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
def learnt(lab: Lab, batch: dict[str, Any]) -> Attempt:
    """Loss and gradients on the fresh batch."""
    return lab.probe("gradients", **batch)


@pytest.fixture(scope="module")
def expected(lab: Lab, batch: dict[str, Any]) -> dict[str, Any]:
    """What ours learns from it: "loss", "gradients" and "changes"."""
    answer: dict[str, Any] = lab.reference("gradients_and_changes", **batch).answer
    return answer


def test_same_loss(learnt: Attempt, expected: dict[str, Any]) -> None:
    """Model and loss are the ones of the brief."""
    mine, trusted = require_answer(learnt), expected
    if odd := mine["gradients"].keys() ^ trusted["gradients"].keys():
        fail("parts_changed", names=", ".join(sorted(odd)))
    note(loss=mine["loss"], expected_loss=trusted["loss"])
    if not np.isclose(mine["loss"], trusted["loss"], rtol=SAME):
        fail("loss_changed", found=f"{mine['loss']:.4f}", wanted=f"{trusted['loss']:.4f}")


@pytest.mark.after("test_same_loss")
def test_every_part_learns(learnt: Attempt, expected: dict[str, Any]) -> None:
    """The loss reaches every part of the model."""
    if names := compare(learnt.answer["gradients"], expected["gradients"], is_nothing):
        fail("no_gradient", names=names)


@pytest.mark.after("test_every_part_learns")
def test_right_gradients(learnt: Attempt, expected: dict[str, Any]) -> None:
    """Each part learns from the whole loss."""
    if names := compare(learnt.answer["gradients"], expected["gradients"], differs):
        fail("other_gradient", names=names)


@pytest.mark.after("test_right_gradients")
def test_training_follows(lab: Lab, batch: dict[str, Any], expected: dict[str, Any]) -> None:
    """An epoch moves every part as its gradient says."""
    mine = require_answer(lab.probe("changes", **batch))
    if names := compare(mine, expected["changes"], differs):
        fail("other_step", names=names)


@pytest.mark.after("test_right_gradients")
def test_script_runs(lab: Lab) -> None:
    """`python train.py` runs to its end."""
    require_finished(lab.run())


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
