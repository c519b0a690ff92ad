"""Hidden checks of exercise 14."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from gpulab.evidence import Attempt, Lab, fail, note, require_answer, require_finished

AXES, FEATURES, EXAMPLE, QUIET = 3, 16, 48, 0.2
SHAPES = {
    "keep": (FEATURES,),
    "encoder.weight": (FEATURES, AXES),
    "encoder.bias": (FEATURES,),
    "running.weight": (1, FEATURES),
    "running.bias": (1,),
    "idling.weight": (1, FEATURES),
    "idling.bias": (1,),
}
SAME = {"rtol": 1e-3, "atol": 1e-3}


@dataclass(frozen=True)
class Question:
    """A window that nobody has seen before, and the wear that the model finds in it."""

    state: str
    window: np.ndarray
    wear: np.ndarray


@dataclass(frozen=True)
class Field:
    """The export, and what the file says to the questions where there is nothing else of ours."""

    questions: list[Question]
    exported: Attempt
    asked: Attempt


def wear(weights: dict[str, np.ndarray], window: np.ndarray) -> np.ndarray:
    """What the model of the brief answers."""
    features = np.tanh(window @ weights["encoder.weight"].T + weights["encoder.bias"])
    keep = 1 / (1 + np.exp(-weights["keep"]))
    memory = np.zeros(FEATURES)
    for reading in features:
        memory = keep * memory + (1 - keep) * reading
    head = "idling" if abs(window).mean() < QUIET else "running"
    return weights[f"{head}.weight"] @ memory + weights[f"{head}.bias"]


def draw(rng: np.random.Generator, weights: dict[str, np.ndarray]) -> list[Question]:
    """Windows of a running and of an idling machine: of the example's length, long, short."""
    questions = []
    for state, level in (("running", rng.uniform(0.8, 2)), ("idling", rng.uniform(0.02, 0.1))):
        for length in (EXAMPLE, rng.integers(80, 401), rng.integers(8, 33)):
            window = (level * rng.normal(size=(length, AXES))).astype(np.float32)
            questions.append(Question(state, window, wear(weights, window)))
    return questions


@pytest.fixture(scope="module")
def field(lab: Lab) -> Field:
    """A model of fresh weights, exported in one process and opened in another."""
    weights = {name: lab.rng.normal(size=shape) for name, shape in SHAPES.items()}
    weights = {name: weight.astype(np.float32) for name, weight in weights.items()}
    weights["keep"] += 2
    questions = draw(lab.rng, weights)
    windows = [question.window for question in questions]
    path = lab.path("field", comes_back=True) / "gauge.pt"
    exported = lab.probe("export", weights, path, windows)
    return Field(questions, exported, lab.elsewhere("ask", path, windows))


def test_same_model(field: Field) -> None:
    """The model itself answers as it did, and is exported."""
    answer = require_answer(field.exported)
    if "odd" in answer:
        fail("parts_changed", names=", ".join(answer["odd"]))
    for question, found in zip(field.questions, answer["answers"], strict=True):
        if not same(found, question):
            fail("model_changed", **difference(found, question))


@pytest.mark.after("test_same_model")
def test_file_opens(field: Field) -> None:
    """The file opens where there is nothing of ours but the file."""
    answer = require_answer(field.asked)
    if "refused" in answer:
        fail("not_opened", error=answer["refused"])


@pytest.mark.after("test_file_opens")
def test_running(field: Field) -> None:
    """For a running machine the file answers as the model does."""
    require_right(field, "running")


@pytest.mark.after("test_file_opens")
def test_idling(field: Field) -> None:
    """For an idling machine the file answers as the model does."""
    require_right(field, "idling")


@pytest.mark.after("test_idling")
def test_script_runs(lab: Lab) -> None:
    """`python train.py` runs to its end."""
    require_finished(lab.run())


def require_right(field: Field, state: str) -> None:
    """Fail at the first window of this state that the file does not answer as the model does."""
    answers = require_answer(field.asked)["answers"]
    for question, answer in zip(field.questions, answers, strict=True):
        if question.state != state:
            continue
        note(**{f"{state}_{len(question.window)}": answer.get("error", "answered")})
        if "error" in answer:
            fail("window_refused", length=len(question.window), state=state, error=answer["error"])
        if not same(answer["wear"], question):
            fail("other_answer", **difference(answer["wear"], question))


def same(found: Any, question: Question) -> bool:
    """Whether an answer is the right one, but for rounding."""
    return np.shape(found) == (1,) and np.allclose(found, question.wear, **SAME)


def difference(found: Any, question: Question) -> dict[str, Any]:
    """The values of a rationale that tells what was answered."""
    return {
        "length": len(question.window),
        "state": question.state,
        "found": np.array2string(np.asarray(found), precision=3, threshold=4),
        "wanted": np.array2string(question.wear, precision=3),
    }
