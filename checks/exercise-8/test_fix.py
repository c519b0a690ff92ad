"""Hidden checks of exercise 8."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from gpulab.evidence import Attempt, Lab, fail, note, require_answer, require_finished

BOARDS, MEASURES, GRADES, WIDTH = 320, 12, 3, 32
LAYERS = [(WIDTH, MEASURES), *3 * [(WIDTH, WIDTH)], (GRADES, WIDTH), (1, WIDTH)]
WANTED = Counter([(MEASURES,)] * 2 + LAYERS + [shape[:1] for shape in LAYERS])
"""The shapes of the model's weights: offset and scale, and each layer's matrix and bias."""
SAME = 1e-3  # single precision errs by some 1e-6


@pytest.fixture(scope="module")
def measured(lab: Lab) -> np.ndarray:
    """Measurements in units of their own."""
    units = lab.rng.uniform(0.3, 4, size=MEASURES)
    return (units * lab.rng.normal(3, 1, size=(BOARDS, MEASURES))).astype(np.float32)


@pytest.fixture(scope="module")
def examined(lab: Lab, measured: np.ndarray) -> Attempt:
    """A fresh model: started, trained, saved, loaded and moved."""
    return lab.probe(
        "examine",
        measured=measured,
        grades=lab.rng.integers(GRADES, size=BOARDS),
        moistures=lab.rng.normal(size=BOARDS).astype(np.float32),
        other=lab.rng.normal(size=(BOARDS, MEASURES)).astype(np.float32),
    )


def test_script_runs(lab: Lab) -> None:
    """`python train.py` runs to its end."""
    require_finished(lab.run())


def test_model_stays(examined: Attempt, measured: np.ndarray) -> None:
    """The model has all its weights, and starts out adjusted to its measurements."""
    answer = require_answer(examined)
    found = Counter(tuple(shape) for shape in answer["shapes"])
    if found != WANTED:
        odd = sorted(((found - WANTED) + (WANTED - found)).elements())
        fail("other_weights", shapes=words(odd))
    wanted = {"offset": measured.mean(axis=0), "scale": 1 / measured.std(axis=0)}
    for name, numbers in wanted.items():
        if not np.allclose(answer["begun"][name], numbers, rtol=0.02, atol=SAME):
            fail("other_start", name=name)


@pytest.mark.after("test_model_stays")
def test_every_weight_learns(examined: Attempt) -> None:
    """Every weight learns."""
    answer = require_answer(examined)
    note(shapes=answer["shapes"], stood=answer["stood"])
    if stood := answer["stood"]:
        shapes = words(answer["shapes"][n] for n in stood)
        fail("stands_still", count=len(stood), total=len(answer["shapes"]), shapes=shapes)


@pytest.mark.after("test_model_stays")
def test_given_optimizer(examined: Attempt) -> None:
    """An epoch moves weights by the optimizer it is given, and by no other."""
    answer = require_answer(examined)
    if moved := answer["moved_at_0"]:
        fail("other_optimizer", count=len(moved))


@pytest.mark.after("test_model_stays")
def test_saved_whole(examined: Attempt) -> None:
    """A model that has loaded another one's state dict answers as that one does."""
    saved = require_answer(examined)["saved"]
    if "refused" in saved:
        fail("load_refused", error=last_line(saved["refused"]))
    for question, wanted in saved["answers"].items():
        difference = float(np.abs(saved["loaded"][question] - wanted).max())
        if not difference <= SAME * max(1.0, float(np.abs(wanted).max())):
            fail("forgotten", question=question, difference=f"{difference:.3f}")


@pytest.mark.after("test_model_stays")
def test_moves_whole(examined: Attempt) -> None:
    """`.to()` moves and converts the whole model."""
    moved: dict[str, Any] = require_answer(examined)["moved"]
    if "refused" in moved:
        fail("not_moved", error=last_line(moved["refused"]))
    if moved["kinds"] != ["cpu torch.float64"]:
        fail("not_converted", kinds=", ".join(moved["kinds"]))


def words(shapes: Any) -> str:
    """Shapes as people write them."""
    return ", ".join(" x ".join(map(str, shape)) for shape in shapes)


def last_line(text: str) -> str:
    """The last line of an error, not too long."""
    return text.strip().splitlines()[-1].strip()[:200]
