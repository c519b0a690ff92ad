"""Hidden checks of exercise 17."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from gpulab.evidence import Attempt, Lab, fail, note, require_answer, require_finished

STEPS, ROWS, NOISE = 2, 64, 4
SAME = 2e-3  # relative to the size of what is compared; single precision errs by some 1e-5
NOTHING = 1e-6  # of the size that was expected

Change = dict[str, np.ndarray]  # by the parameter's name


@dataclass(frozen=True)
class Steps:
    """Two steps on fresh weights, spots and noise: the attempt's, and those of the losses."""

    attempt: Attempt
    trusted: dict[str, Any]

    @cached_property
    def mine(self) -> dict[str, Any]:
        """What the attempt answered."""
        return dict(require_answer(self.attempt))

    def fits(self, role: str, steps: slice) -> list[str]:
        """The orders of the two steps in which the network changed as its loss says."""
        return [
            order
            for order, wanted in self.trusted["orders"].items()
            if distance(self.mine["changes"][steps], wanted[steps], role) <= SAME
        ]

    def miss(self, role: str) -> float:
        """How far the first step of a network is from the nearest right one, by its length."""
        found, orders = self.mine["changes"][:1], self.trusted["orders"].values()
        return min(distance(found, wanted[:1], role) for wanted in orders)


@pytest.fixture(scope="module")
def steps(lab: Lab) -> Steps:
    """Both attempts on the same fresh inputs."""
    inputs = {
        "seed": int(lab.rng.integers(2**31)),
        "reals": [draw(lab, 2) for _ in range(STEPS)],
        "noises": [draw(lab, NOISE) for _ in range(STEPS)],
    }
    attempt = lab.probe("steps", **inputs)
    return Steps(attempt, require_answer(lab.reference("expected", **inputs)))


def draw(lab: Lab, width: int) -> np.ndarray:
    """One batch of normal numbers."""
    return lab.rng.normal(size=(ROWS, width)).astype(np.float32)


def distance(found: list[Change], wanted: list[Change], role: str) -> float:
    """How far the changes of one network lie apart, by the length of the wanted ones."""
    found_line, wanted_line = line(found, role), line(wanted, role)
    return float(np.linalg.norm(found_line - wanted_line) / np.linalg.norm(wanted_line))


def line(changes: list[Change], role: str) -> np.ndarray:
    """All changes of one network in one row."""
    parts = [change[name].ravel() for change in changes for name in sorted(change) if role in name]
    return np.concatenate(parts)


def test_script_runs(lab: Lab) -> None:
    """`python train.py` runs to its end."""
    require_finished(lab.run())


@pytest.mark.after("test_script_runs")
def test_same_networks(steps: Steps) -> None:
    """Generator and critic are the ones of the brief."""
    mine, trusted = steps.mine, steps.trusted
    if odd := mine["changes"][0].keys() ^ trusted["changes"][0].keys():
        fail("parts_changed", names=", ".join(sorted(odd)))
    for what, rationale in (("made", "made_changed"), ("scores", "scores_changed")):
        found, wanted = mine[what], trusted[what]
        if found.shape != wanted.shape or not np.allclose(found, wanted, rtol=SAME, atol=SAME):
            fail(rationale)


@pytest.mark.after("test_same_networks")
def test_critic_follows(steps: Steps) -> None:
    """A step moves the critic as the critic's loss says."""
    note(critic_off=steps.miss("critic"))
    if not steps.fits("critic", slice(1)):
        fail("critic_astray", off=f"{steps.miss('critic'):.0%}")


@pytest.mark.after("test_same_networks")
def test_generator_follows(steps: Steps) -> None:
    """A step moves the generator as the generator's loss says."""
    found = np.linalg.norm(line(steps.mine["changes"][:1], "generator"))
    wanted = np.linalg.norm(line(steps.trusted["changes"][:1], "generator"))
    note(generator_off=steps.miss("generator"))
    if found <= NOTHING * wanted:
        fail("generator_still")
    if not steps.fits("generator", slice(1)):
        fail("generator_astray", off=f"{steps.miss('generator'):.0%}")


@pytest.mark.after("test_critic_follows")
@pytest.mark.after("test_generator_follows")
def test_next_step_follows(steps: Steps) -> None:
    """The step after it does the same."""
    both = slice(STEPS)
    if not set(steps.fits("critic", both)) & set(steps.fits("generator", both)):
        fail("next_step_astray")
