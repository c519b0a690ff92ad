"""Hidden checks of exercise 1.

The checkpoint is the shipped one, whatever the work folder holds; the windows are fresh.
"""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpulab.evidence import Attempt, Lab, fail, note, remark, require_answer

STEPS = 40


@pytest.fixture(scope="module")
def checkpoint(lab: Lab) -> Path:
    """The shipped checkpoint, out of the attendee's reach."""
    return shutil.copy(lab.exercise.folder / "pretrained.pt", lab.path("checkpoint"))


@pytest.fixture(scope="module")
def seed(lab: Lab) -> int:
    """Chooses the windows that are trained on."""
    return int(lab.rng.integers(1 << 31))


@pytest.fixture(scope="module")
def windows(lab: Lab) -> np.ndarray:
    """What the model by itself is tried on."""
    return lab.rng.normal([12, -3.5, 140], [4, 0.25, 30], (16, 32, 3))


@pytest.fixture(scope="module")
def on_cuda(lab: Lab, checkpoint: Path, seed: int) -> Attempt:
    """Training on the GPU."""
    return lab.probe("train", "cuda", checkpoint, STEPS, seed)


@pytest.fixture(scope="module")
def moved(lab: Lab, checkpoint: Path, windows: np.ndarray) -> Attempt:
    """The model by itself: loaded, moved, converted."""
    return lab.probe("try_model", "cuda", checkpoint, windows)


@pytest.fixture(scope="module")
def expected(lab: Lab, checkpoint: Path, seed: int, windows: np.ndarray) -> dict[str, Any]:
    """What ours answers to the same: "training" and "model"."""
    trusted = lab.reference("train_and_try", "cuda", checkpoint, STEPS, seed, windows)
    answer: dict[str, Any] = trusted.answer
    return answer


def require_close(got: Any, wanted: Any, what: str) -> None:
    """Fail unless the numbers are equal but for rounding."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    if got.shape != wanted.shape:
        fail("numbers_missing", what=what, got=list(got.shape), wanted=list(wanted.shape))
    if not np.allclose(got, wanted, rtol=0.01, atol=0.005):
        difference = float(np.abs(got - wanted).max())
        fail("numbers_differ", what=what, difference=f"{difference:.3g}")


def test_trains_on_cuda(on_cuda: Attempt) -> None:
    """Training on `cuda` comes to its end."""
    require_answer(on_cuda)


@pytest.mark.after("test_trains_on_cuda")
def test_same_training(on_cuda: Attempt, expected: dict[str, Any]) -> None:
    """Losses, weights and smoothed weights are what they must be."""
    answer, trusted = require_answer(on_cuda), expected["training"]
    require_close(answer["losses"], trusted["losses"], "losses")
    for kind in ("weights", "smoothed"):
        if answer[kind].keys() != trusted[kind].keys():
            fail("names_differ", got=sorted(answer[kind]), wanted=sorted(trusted[kind]))
        for name, wanted in trusted[kind].items():
            require_close(answer[kind][name], wanted, f"{kind} {name}")


@pytest.mark.after("test_trains_on_cuda")
def test_work_on_cuda(on_cuda: Attempt, expected: dict[str, Any]) -> None:
    """The work is done on the GPU, and its results are there."""
    answer = require_answer(on_cuda)
    note(worked_on=answer["worked_on"], copies=answer["copies"])
    if answer["devices"] != ["cuda"]:
        fail("results_elsewhere", where=", ".join(answer["devices"]))
    if elsewhere := answer["worked_on"].get("cpu", 0):
        fail("work_elsewhere", count=elsewhere, total=sum(answer["worked_on"].values()))
    extra = answer["copies"] - expected["training"]["copies"]
    if extra >= STEPS:
        remark("copies", count=round(extra / STEPS))


@pytest.mark.after("test_trains_on_cuda")
def test_trains_on_cpu(lab: Lab, expected: dict[str, Any], checkpoint: Path, seed: int) -> None:
    """The same training still runs on the CPU."""
    answer = require_answer(lab.probe("train", "cpu", checkpoint, STEPS, seed))
    require_close(answer["losses"], expected["training"]["losses"], "losses")


@pytest.mark.after("test_trains_on_cuda")
def test_checkpoint_loads(moved: Attempt, expected: dict[str, Any]) -> None:
    """The shipped checkpoint loads strictly, and the names of the weights are as they were."""
    answer = require_answer(moved)
    if "refused" in answer:
        fail("checkpoint_refused", error=answer["refused"].strip().splitlines()[-1].strip())
    if answer["names"] != expected["model"]["names"]:
        fail("names_differ", got=answer["names"], wanted=expected["model"]["names"])


@pytest.mark.after("test_trains_on_cuda")
def test_model_moves(moved: Attempt, expected: dict[str, Any]) -> None:
    """A model that is moved or converted after its making works where it is."""
    answer = require_answer(moved)
    if "refused" in answer:
        return  # another check says so
    device, kind = answer["kinds"]
    if device != "cuda" or kind != "torch.float64":
        fail("output_differs", device=device, kind=kind)
    for name, wanted in expected["model"]["scores"].items():
        require_close(answer["scores"][name], wanted, "scores")
