"""Hidden checks of exercise 12."""

from typing import Any

import numpy as np
import pytest

from gpulab.evidence import Attempt, Lab, fail, note, require_answer, require_finished

INPUTS, ROWS = 6, 40
SAME = 1e-3  # relative to the size of what is compared; single precision errs by some 1e-6

Case = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def cases(lab: Lab) -> list[Case]:
    """Inputs of two and more dimensions, and the weight that each value has in a loss."""
    channels = int(lab.rng.integers(3, 8))
    shapes = [lab.rng.integers(3, 9, size=dimensions) for dimensions in (1, 2, 3)]
    return [
        {
            "x": lab.rng.normal(size=(*shape, channels)),
            "slope": lab.rng.uniform(0.5, 2, size=channels),
            "weights": lab.rng.normal(size=(*shape, channels)),
        }
        for shape in shapes
    ]


@pytest.fixture(scope="module")
def judged(lab: Lab, cases: list[Case]) -> tuple[Attempt, Attempt]:
    """The activation on these cases, and a fresh model on fresh data, by both."""
    readings = lab.rng.normal(size=(ROWS, INPUTS)).astype(np.float32)
    flow = lab.rng.normal(size=ROWS).astype(np.float32)
    return lab.both("judge", int(lab.rng.integers(2**31)), cases, readings, flow)


def answers(judged: tuple[Attempt, Attempt]) -> tuple[Any, Any]:
    """The answers of the attempt and of the trusted one."""
    return require_answer(judged[0]), require_answer(judged[1])


def expected(x: np.ndarray, slope: np.ndarray, weights: np.ndarray) -> Case:
    """The values, and the gradients of the sum of `weights` times the values."""
    gate = 1 / (1 + np.exp(-slope * x))
    bend = gate * (1 - gate)
    to_slope = (weights * x * x * bend).reshape(-1, len(slope)).sum(axis=0)
    return {"values": x * gate, "x": weights * (gate + slope * x * bend), "slope": to_slope}


def wrong(judged: tuple[Attempt, Attempt], cases: list[Case], what: str) -> list[str]:
    """The shapes of x in those cases in which `what` is not as expected."""
    found = answers(judged)[0]["cases"]
    return [
        str(case["x"].shape)
        for mine, case in zip(found, cases, strict=True)
        if differs(mine[what], expected(**case)[what])
    ]


def test_same_values(judged: tuple[Attempt, Attempt], cases: list[Case]) -> None:
    """The activation's values are those of the brief."""
    if shapes := wrong(judged, cases, "values"):
        fail("values_differ", shapes=", ".join(shapes))


@pytest.mark.after("test_same_values")
def test_gradient_of_x(judged: tuple[Attempt, Attempt], cases: list[Case]) -> None:
    """The gradient of x is right, whatever the loss makes of the values."""
    if shapes := wrong(judged, cases, "x"):
        fail("x_gradient_differs", shapes=", ".join(shapes))


@pytest.mark.after("test_gradient_of_x")
def test_gradient_of_slope(judged: tuple[Attempt, Attempt], cases: list[Case]) -> None:
    """The gradient of the slopes is right, whatever the loss makes of the values."""
    if shapes := wrong(judged, cases, "slope"):
        fail("slope_gradient_differs", shapes=", ".join(shapes))


@pytest.mark.after("test_gradient_of_slope")
def test_same_loss(judged: tuple[Attempt, Attempt]) -> None:
    """Model and loss are the ones of the brief."""
    mine, trusted = answers(judged)
    if odd := mine["gradients"].keys() ^ trusted["gradients"].keys():
        fail("parts_changed", names=", ".join(sorted(odd)))
    note(loss=mine["loss"], expected_loss=trusted["loss"])
    if not np.isclose(mine["loss"], trusted["loss"], rtol=SAME):
        fail("loss_differs", found=f"{mine['loss']:.4f}", wanted=f"{trusted['loss']:.4f}")


@pytest.mark.after("test_same_loss")
def test_model_learns(judged: tuple[Attempt, Attempt]) -> None:
    """Every part of the model gets the gradient of the loss."""
    mine, trusted = (answer["gradients"] for answer in answers(judged))
    if names := [name for name, wanted in trusted.items() if differs(mine[name], wanted)]:
        fail("model_gradient_differs", names=", ".join(names))


@pytest.mark.after("test_model_learns")
def test_script_runs(lab: Lab) -> None:
    """`python train.py` runs to its end."""
    require_finished(lab.run())


def differs(found: np.ndarray | None, wanted: np.ndarray) -> bool:
    """Whether it is absent, of another shape, or differs in more than rounding; NaN does."""
    if found is None or found.shape != wanted.shape:
        return True
    return not bool(np.linalg.norm(found - wanted) <= SAME * np.linalg.norm(wanted))
