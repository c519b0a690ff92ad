"""Hidden checks of exercise 1.

The checkpoint is the shipped one, whatever the work folder holds; the windows are fresh.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpulab.evidence import Attempt, Lab, fail, note, remark, require_answer

STEPS = 40


@dataclass(frozen=True)
class Pair:
    """An attempt of the attendee's and what ours answered on the same input."""

    attempt: Attempt
    trusted: Any


@pytest.fixture(scope="module")
def checkpoint(lab: Lab) -> Path:
    """The shipped checkpoint, out of the attendee's reach."""
    return shutil.copy(lab.exercise.folder / "pretrained.pt", lab.path("checkpoint"))


@pytest.fixture(scope="module")
def seed(lab: Lab) -> int:
    """Chooses the windows that are trained on."""
    return int(lab.rng.integers(1 << 31))


@pytest.fixture(scope="module")
def on_cuda(lab: Lab, checkpoint: Path, seed: int) -> Pair:
    """Training on the GPU."""
    mine, trusted = lab.both("train", "cuda", checkpoint, STEPS, seed)
    return Pair(mine, trusted.answer)


@pytest.fixture(scope="module")
def moved(lab: Lab, checkpoint: Path) -> Pair:
    """The model by itself: loaded, moved, converted."""
    windows = lab.rng.normal([12, -3.5, 140], [4, 0.25, 30], (16, 32, 3))
    mine, trusted = lab.both("try_model", "cuda", checkpoint, windows)
    return Pair(mine, trusted.answer)


def require_close(got: Any, wanted: Any, what: str) -> None:
    """Fail unless the numbers are equal but for rounding."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    if got.shape != wanted.shape:
        fail("numbers_missing", what=what, got=list(got.shape), wanted=list(wanted.shape))
    if not np.allclose(got, wanted, rtol=0.01, atol=0.005):
        difference = float(np.abs(got - wanted).max())
        fail("numbers_differ", what=what, difference=f"{difference:.3g}")


def test_trains_on_cuda(on_cuda: Pair) -> None:
    """Training on `cuda` comes to its end."""
    require_answer(on_cuda.attempt)


@pytest.mark.after("test_trains_on_cuda")
def test_same_training(on_cuda: Pair) -> None:
    """Losses, weights and smoothed weights are what they must be."""
    answer = require_answer(on_cuda.attempt)
    require_close(answer["losses"], on_cuda.trusted["losses"], "losses")
    for kind in ("weights", "smoothed"):
        if answer[kind].keys() != on_cuda.trusted[kind].keys():
            fail("names_differ", got=sorted(answer[kind]), wanted=sorted(on_cuda.trusted[kind]))
        for name, wanted in on_cuda.trusted[kind].items():
            require_close(answer[kind][name], wanted, f"{kind} {name}")


@pytest.mark.after("test_trains_on_cuda")
def test_work_on_cuda(on_cuda: Pair) -> None:
    """The work is done on the GPU, and its results are there."""
    answer = require_answer(on_cuda.attempt)
    note(worked_on=answer["worked_on"], copies=answer["copies"])
    if answer["devices"] != ["cuda"]:
        fail("results_elsewhere", where=", ".join(answer["devices"]))
    if elsewhere := answer["worked_on"].get("cpu", 0):
        fail("work_elsewhere", count=elsewhere, total=sum(answer["worked_on"].values()))
    extra = answer["copies"] - on_cuda.trusted["copies"]
    if extra >= STEPS:
        remark("copies", count=round(extra / STEPS))


@pytest.mark.after("test_trains_on_cuda")
def test_trains_on_cpu(lab: Lab, on_cuda: Pair, checkpoint: Path, seed: int) -> None:
    """The same training still runs on the CPU."""
    answer = require_answer(lab.probe("train", "cpu", checkpoint, STEPS, seed))
    require_close(answer["losses"], on_cuda.trusted["losses"], "losses")


@pytest.mark.after("test_trains_on_cuda")
def test_checkpoint_loads(moved: Pair) -> None:
    """The shipped checkpoint loads strictly, and the names of the weights are as they were."""
    answer = require_answer(moved.attempt)
    if "refused" in answer:
        fail("checkpoint_refused", error=answer["refused"].strip().splitlines()[-1].strip())
    if answer["names"] != moved.trusted["names"]:
        fail("names_differ", got=answer["names"], wanted=moved.trusted["names"])


@pytest.mark.after("test_trains_on_cuda")
def test_model_moves(moved: Pair) -> None:
    """A model that is moved or converted after its making works where it is."""
    answer = require_answer(moved.attempt)
    if "refused" in answer:
        return  # another check says so
    device, kind = answer["kinds"]
    if device != "cuda" or kind != "torch.float64":
        fail("output_differs", device=device, kind=kind)
    for name, wanted in moved.trusted["scores"].items():
        require_close(answer["scores"][name], wanted, "scores")
