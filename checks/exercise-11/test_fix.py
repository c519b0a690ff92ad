"""Hidden checks of exercise 11."""

from typing import Any

import numpy as np
import pytest

from gpulab.evidence import Attempt, Lab, fail, note, require_answer, require_finished

CHANNELS, WINDOW = 3, 25
WINDOWS = range(5, 8)
SAME = 1e-3  # relative to the size of what is compared; single precision errs by some 1e-6

Step = dict[str, np.ndarray | None]


@pytest.fixture(scope="module")
def learnt(lab: Lab) -> tuple[Attempt, Attempt]:
    """One pass over fresh recordings with fresh weights: the attempt's and the trusted one."""
    count, rest = int(lab.rng.integers(6, 12)), int(lab.rng.integers(5, WINDOW))
    steps = WINDOW * int(lab.rng.choice(WINDOWS)) + rest
    readings = lab.rng.normal(size=(count, steps, CHANNELS)).astype(np.float32)
    valve = lab.rng.integers(2, size=(count, steps)).astype(np.float32)
    return lab.both("learn", int(lab.rng.integers(2**31)), readings, valve)


def answers(learnt: tuple[Attempt, Attempt]) -> tuple[Any, Any]:
    """The answers of the attempt and of the trusted one."""
    return require_answer(learnt[0]), require_answer(learnt[1])


def steps(learnt: tuple[Attempt, Attempt]) -> list[tuple[Step, Step]]:
    """The gradients at each step, the attempt's and the trusted ones."""
    mine, trusted = answers(learnt)
    return list(zip(mine["steps"], trusted["steps"], strict=True))


def test_training_goes_on(learnt: tuple[Attempt, Attempt]) -> None:
    """Training goes on to the last window."""
    require_finished(learnt[0])


@pytest.mark.after("test_training_goes_on")
def test_step_a_window(learnt: tuple[Attempt, Attempt]) -> None:
    """The optimizer takes one step after each window."""
    mine, trusted = answers(learnt)
    if odd := set(mine["names"]) ^ set(trusted["names"]):
        fail("parts_changed", names=", ".join(sorted(odd)))
    found, wanted = len(mine["steps"]), len(trusted["steps"])
    if found != wanted:
        fail("steps_differ", found=found, wanted=wanted)


@pytest.mark.after("test_step_a_window")
def test_state_goes_on(learnt: tuple[Attempt, Attempt]) -> None:
    """A window begins in the state in which the one before it ended."""
    # What the head is given depends on the scores alone, not on how far gradients reach.
    wrong = odd_windows(steps(learnt), "head")
    note(windows_with_other_scores=wrong)
    if wrong:
        fail("state_differs", window=wrong[0], count=len(wrong), total=len(steps(learnt)))


@pytest.mark.after("test_state_goes_on")
def test_learns_within_a_window(learnt: tuple[Attempt, Attempt]) -> None:
    """Every step of a window learns from all later ones of that window."""
    if wrong := odd_windows(steps(learnt), "cell"):
        fail("reach_differs", window=wrong[0], count=len(wrong), total=len(steps(learnt)))


@pytest.mark.after("test_state_goes_on")
def test_start_is_learnt(learnt: tuple[Attempt, Attempt]) -> None:
    """The state that recordings begin with is learnt from the first window."""
    mine, trusted = steps(learnt)[0]
    if mine["start"] is None:
        fail("start_stands")
    if differs(mine["start"], trusted["start"]):
        fail("start_differs")


@pytest.mark.after("test_learns_within_a_window")
def test_script_runs(lab: Lab) -> None:
    """`python train.py` runs to its end."""
    require_finished(lab.run())


def odd_windows(pairs: list[tuple[Step, Step]], part: str) -> list[int]:
    """The windows, from 1, in which the gradients of a part of the model differ."""
    return [
        number
        for number, (mine, trusted) in enumerate(pairs, 1)
        if any(differs(mine[name], trusted[name]) for name in trusted if name.startswith(part))
    ]


def differs(found: np.ndarray | None, wanted: np.ndarray | None) -> bool:
    """Whether a gradient is absent or differs in more than rounding; NaN does."""
    if found is None or wanted is None or found.shape != wanted.shape:
        return found is not wanted
    return not bool(np.linalg.norm(found - wanted) <= SAME * np.linalg.norm(wanted))
