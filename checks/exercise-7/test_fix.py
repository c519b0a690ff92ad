"""Hidden checks of exercise 7: small batches are judged against whole windows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from gpulab.evidence import Attempt, Lab, fail, note, require_answer, require_finished

SENSORS, EPOCHS = 24, 2
SAME = 1e-3  # relative; single precision errs by some 1e-6
ROOM = 1.5  # times what one small batch keeps for backward


@dataclass(frozen=True)
class Trial:
    """One loader: what the attempt did, and what large batches would have done."""

    attempt: Attempt
    wanted: dict[str, Any]
    windows: int  # an epoch


@pytest.fixture(scope="module")
def ragged(lab: Lab) -> Trial:
    """Two full windows; in the last one a full batch and a smaller one."""
    batch, accumulate = (int(n) for n in lab.rng.integers([5, 3], [9, 6]))
    rest = batch + int(lab.rng.integers(1, batch - 1))
    return trial(lab, 2 * batch * accumulate + rest, batch, accumulate)


@pytest.fixture(scope="module")
def even(lab: Lab) -> Trial:
    """Three full windows and nothing left."""
    batch, accumulate = (int(n) for n in lab.rng.integers([5, 3], [9, 6]))
    return trial(lab, 3 * batch * accumulate, batch, accumulate)


def trial(lab: Lab, wafers: int, batch: int, accumulate: int) -> Trial:
    """Fresh weights, traces and yields; the yields grow, so that no two windows are alike."""
    inputs = {
        "seed": int(lab.rng.integers(2**31)),
        "traces": lab.rng.normal(size=(wafers, SENSORS)).astype(np.float32),
        "yields": (lab.rng.normal(size=wafers) + np.linspace(0, 3, wafers)).astype(np.float32),
        "batch": batch,
        "accumulate": accumulate,
    }
    attempt = lab.probe("small_batches", **inputs)
    wanted = lab.reference("whole_windows", **inputs).answer
    return Trial(attempt, wanted, -(-wafers // (batch * accumulate)))


def test_script_runs(lab: Lab) -> None:
    """`python train.py` runs to its end."""
    require_finished(lab.run())


def test_steps(ragged: Trial) -> None:
    """There is one step for each window, the last and smaller one included."""
    require_steps(ragged)


@pytest.mark.after("test_steps")
def test_gradients(ragged: Trial) -> None:
    """Each step goes by the mean over all wafers of its window."""
    require_gradients(ragged)


@pytest.mark.after("test_gradients")
def test_nothing_left(even: Trial) -> None:
    """It is right as well where the last window is full."""
    require_steps(even)
    require_gradients(even)


def test_memory(ragged: Trial) -> None:
    """No more than one batch at a time waits for its backward."""
    found, wanted = require_answer(ragged.attempt)["kept"], ragged.wanted["kept"]
    note(kept=found, one_batch=wanted)
    if found > ROOM * wanted:
        fail("too_much_kept", times=f"{found / wanted:.1f}")


@pytest.mark.after("test_gradients")
def test_loss_told(ragged: Trial) -> None:
    """The loss that is returned is the mean over the epoch's wafers."""
    found, wanted = require_answer(ragged.attempt)["losses"], ragged.wanted["losses"]
    note(losses=found, expected=wanted)
    if not np.allclose(found, wanted, rtol=SAME):
        fail("other_loss", found=f"{found[0]:.4f}", wanted=f"{wanted[0]:.4f}")


def require_steps(trial: Trial) -> None:
    """Fail unless there were as many steps as windows."""
    found = len(require_answer(trial.attempt)["gradients"])
    if found != EPOCHS * trial.windows:
        fail("other_steps", found=found, wanted=EPOCHS * trial.windows)


def require_gradients(trial: Trial) -> None:
    """Fail at the first step whose gradient is not that of its window."""
    steps = zip(trial.attempt.answer["gradients"], trial.wanted["gradients"], strict=True)
    for number, (found, wanted) in enumerate(steps):
        if found.shape != wanted.shape:
            fail("other_weights", found=found.size, wanted=wanted.size)
        if np.linalg.norm(found - wanted) <= SAME * np.linalg.norm(wanted):
            continue
        times = np.linalg.norm(found) / np.linalg.norm(wanted)
        window = number % trial.windows + 1
        told = {"epoch": number // trial.windows + 1, "times": f"{times:.2f}"}
        if window == trial.windows:
            fail("other_last_gradient", **told)
        fail("other_gradient", window=window, windows=trial.windows, **told)
