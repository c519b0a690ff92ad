"""Hidden checks of exercise 3.

The checkpoints are written by a trusted attempt, with weights that nobody has seen. Where the lab
has no GPU, a GPU's checkpoint is made by noting a CUDA device in the file while it is saved: that
note is all that such a file differs by. `from-gpu.pt`, shipped with the exercise, was made so.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpulab.evidence import Attempt, Lab, fail, note, require_answer, require_finished
from gpulab.model import Device

KINDS = ("wrapped", "plain", "other_device", "incomplete", "other_shape", "trap")
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Restored:
    """What became of a checkpoint of each kind."""

    attempt: Attempt
    scores: dict[str, Any]  # of the models that were saved
    trap: Path
    device: str

    def outcome(self, kind: str) -> dict[str, Any]:
        """Scores and device of the restored model, or the error."""
        outcome: dict[str, Any] = require_answer(self.attempt)[kind]
        return outcome

    def require_same_answers(self, kind: str) -> None:
        """Fail the check unless the restored model answers as the saved one did."""
        outcome = self.outcome(kind)
        if "error" in outcome:
            fail("not_restored", error=outcome["error"])
        if outcome["scores"].shape != self.scores[kind].shape:
            fail("shape_differs", shape=list(outcome["scores"].shape))
        difference = float(np.abs(outcome["scores"] - self.scores[kind]).max())
        note(largest_difference=difference)
        if not difference < TOLERANCE:
            fail("scores_differ", difference=f"{difference:.3g}")
        if outcome["device"] != self.device:
            fail("elsewhere", device=outcome["device"], expected=self.device)


@pytest.fixture(scope="module")
def restored(lab: Lab) -> Restored:
    """Every kind of checkpoint, written by us and restored by the attendee's script."""
    folder = lab.path("checkpoints", comes_back=True)
    trap = folder / "sprung"
    tickets = lab.rng.integers(0, 96, (64, 16))
    dropped = int(lab.rng.integers(0, 1000))
    scores = lab.reference("write_checkpoints", folder, trap, tickets, dropped).answer
    paths = [folder / f"{kind}.pt" for kind in KINDS]
    attempt = lab.probe("restore_all", paths, tickets)
    return Restored(attempt, scores, trap, "cpu" if lab.device is Device.CPU else "cuda")


def test_wrapped(restored: Restored) -> None:
    """A model restored from what training saved answers as it did."""
    restored.require_same_answers("wrapped")


def test_plain(restored: Restored) -> None:
    """A checkpoint of the bare model still restores."""
    restored.require_same_answers("plain")


@pytest.mark.after("test_wrapped")
def test_other_device(restored: Restored) -> None:
    """A checkpoint opens on a machine that lacks the device it was written on."""
    restored.require_same_answers("other_device")


@pytest.mark.after("test_wrapped")
def test_incomplete_refused(restored: Restored) -> None:
    """A checkpoint that lacks one of the model's weights is refused."""
    if "error" not in restored.outcome("incomplete"):
        fail("incomplete_accepted")


@pytest.mark.after("test_wrapped")
def test_other_shape_refused(restored: Restored) -> None:
    """A checkpoint of a model with more queues is refused."""
    if "error" not in restored.outcome("other_shape"):
        fail("other_shape_accepted")


@pytest.mark.after("test_wrapped")
def test_nothing_runs(restored: Restored) -> None:
    """Opening a checkpoint runs nothing that stands in it."""
    restored.outcome("trap")
    if restored.trap.exists():
        fail("code_ran")


@pytest.mark.after("test_wrapped")
def test_script_finishes(lab: Lab) -> None:
    """The script trains, saves and restores to its end."""
    require_finished(lab.run())
