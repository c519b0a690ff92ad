"""Hidden checks of exercise 6."""

from typing import Any

import numpy as np
import pytest

from gpulab.evidence import Attempt, Lab, fail, note, require_answer, require_finished

BATCH, SENSORS, KINDS = 16, 16, 4
SAME = 1e-3  # relative; single precision errs by some 1e-6
REPEATED = 1e-6  # two losses nearer than this (relative) were computed in the same way

Numbers = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def watched(lab: Lab) -> tuple[Attempt, Attempt]:
    """Training and evaluation on fresh weights: the attempt's and the trusted one's."""
    return lab.both(
        "watch",
        seed=int(lab.rng.integers(2**31)),
        readings=lab.rng.normal(0.5, 1.5, size=(BATCH, SENSORS)).astype(np.float32),
        kinds=lab.rng.integers(KINDS, size=BATCH),
        held_readings=lab.rng.normal(size=(24, SENSORS)).astype(np.float32),
        held_kinds=lab.rng.integers(KINDS, size=24),
    )


def test_script_runs(lab: Lab) -> None:
    """`python train.py` runs to its end."""
    require_finished(lab.run())


def test_backbone_stays(watched: tuple[Attempt, Attempt]) -> None:
    """Training leaves the backbone as it was."""
    mine, trusted = answers(watched)
    for part in ("backbone", "head"):
        found, wanted = mine["often"]["before"][part], trusted["often"]["before"][part]
        if odd := found.keys() ^ wanted.keys():
            fail("names_changed", part=part, names=", ".join(sorted(odd)))
    before, after = (mine["often"][when]["backbone"] for when in ("before", "after"))
    if names := differing(after, before):
        fail("backbone_changed", names=names)


def test_evaluation_right(watched: tuple[Attempt, Attempt]) -> None:
    """Evaluation is repeatable, right, and leaves no trace in the model."""
    mine, trusted = (answer["evaluated"] for answer in answers(watched))
    wanted = trusted["values"][0]
    note(evaluated=mine["values"], expected=wanted)
    for values in mine["values"]:
        if not np.allclose(values, wanted, rtol=SAME):
            fail("evaluation_wrong", found=said(values), wanted=said(wanted))
    if names := differing(mine["after"], mine["before"]):
        fail("evaluation_changes", names=names)


@pytest.mark.after("test_evaluation_right")
def test_dropout_works(watched: tuple[Attempt, Attempt]) -> None:
    """The head's dropout works in every step."""
    mine, trusted = (answer["standing"]["losses"] for answer in answers(watched))
    if len(mine) != len(trusted):
        fail("steps_missing", found=len(mine), wanted=len(trusted))
    losses = np.asarray(mine, float)
    near = np.isclose(losses[:, None], losses[None, :], rtol=REPEATED, atol=0).sum(axis=1) > 1
    note(losses=mine)
    if near.sum() > 2:
        fail("no_dropout", count=int(near.sum()), total=len(losses))


@pytest.mark.after("test_evaluation_right")
def test_head_statistics(watched: tuple[Attempt, Attempt]) -> None:
    """The head learns from what the frozen backbone gives in use."""
    mine, trusted = (answer["standing"]["head"] for answer in answers(watched))
    if names := differing(mine, trusted):
        fail("other_statistics", names=names)


@pytest.mark.after("test_head_statistics")
def test_evaluations_come(watched: tuple[Attempt, Attempt]) -> None:
    """Evaluations come when they are due, and say how the model is doing."""
    mine, trusted = (answer["standing"]["evaluations"] for answer in answers(watched))
    if len(mine) != len(trusted):
        fail("evaluations_missing", found=len(mine), wanted=len(trusted))
    for values, wanted in zip(mine, trusted, strict=True):
        if not np.allclose(values, wanted, rtol=SAME):
            fail("evaluation_wrong", found=said(values), wanted=said(wanted))


@pytest.mark.after("test_dropout_works")
@pytest.mark.after("test_head_statistics")
def test_looking_changes_nothing(watched: tuple[Attempt, Attempt]) -> None:
    """How often it is evaluated makes no difference to what the head learns."""
    mine, trusted = answers(watched)
    often, seldom = (mine[how]["after"]["head"] for how in ("often", "seldom"))
    if names := differing(often, seldom):
        fail("looking_matters", names=names)
    found, wanted = way(mine["often"]), way(trusted["often"])
    if not 0.5 * wanted <= found <= 2 * wanted:
        fail("learns_otherwise", found=f"{found:.2f}", wanted=f"{wanted:.2f}")


def answers(watched: tuple[Attempt, Attempt]) -> tuple[Any, Any]:
    """What the attempt and the trusted one answered."""
    return require_answer(watched[0]), watched[1].answer


def differing(found: Numbers, wanted: Numbers) -> str:
    """The names of what differs in size or direction, as a list in words."""
    return ", ".join(
        name
        for name, numbers in wanted.items()
        if name not in found
        or found[name].shape != numbers.shape
        or not np.linalg.norm(found[name] - numbers) <= SAME * np.linalg.norm(numbers)
    )


def way(run: dict[str, Any]) -> float:
    """How far training has moved the head, all its numbers together."""
    before, after = run["before"]["head"], run["after"]["head"]
    return float(np.sqrt(sum(((after[name] - before[name]) ** 2).sum() for name in before)))


def said(values: list[float]) -> str:
    """Loss and share, in words."""
    return ", ".join(f"{value:.4f}" for value in values)
