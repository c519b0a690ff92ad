"""The map: every exercise and claim in its place, and every message that people report in one."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from gpulab.catalogue import Catalogue
from gpulab.claims import load_all
from gpulab.map import Board, find, load_families, picture
from gpulab.map.errors import shown_in
from gpulab.model import Verdict

CHECKOUT = Path(__file__).resolve().parents[2]
FAMILIES = load_families()
EXERCISES = list(Catalogue(CHECKOUT))

REPORTED = [
    line.partition(": ")[::2]
    for line in (Path(__file__).parent / "map/reported.txt")
    .read_text(encoding="utf-8")
    .splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(("place", "text"), REPORTED, ids=[text[:40] for _, text in REPORTED])
def test_what_people_report(place: str, text: str) -> None:
    first = find(text, FAMILIES, EXERCISES)[0]
    assert first.sure
    assert f"{first.place.primitive} {first.place.layer}" == place


def test_a_message_cut_short_in_another_case_with_curly_quotes_and_line_breaks() -> None:
    for text in (
        "RuntimeError: Trying to backward\u2026",
        "trying  to backward\nthrough the graph a SECOND time",
        "You must implement either the backward or vjp method for your custom autograd.Function to",
        "detected call of \u2018lr_scheduler.step()\u2019 before \u2018optimizer.step()\u2019",
    ):
        assert find(text, FAMILIES, [])[0].sure, text


def test_a_whole_traceback_of_a_worker() -> None:
    text = """RuntimeError: Caught RuntimeError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "collate.py", line 272, in collate_tensor_fn
    return torch.stack(batch, 0, out=out)
RuntimeError: stack expects each tensor to be equal size, but got [3, 10] at entry 0 and [3, 11]"""
    own, wrapper = find(text, FAMILIES, [])
    assert (58 in own.claims, 50 in wrapper.claims) == (True, True)


def test_a_text_that_only_resembles_one() -> None:
    (answer,) = find("samples must be stacked: expects each one of equal size", FAMILIES, [])
    assert not answer.sure
    assert 58 in answer.claims


@pytest.mark.parametrize(
    "text", ["", "   ", "xyzzy", "KeyError: 'loss'", "\x1b[31m", "*", "(((", "x" * 100_000]
)
def test_a_text_without_a_place(text: str) -> None:
    assert find(text, FAMILIES, EXERCISES) == []


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_an_exercise_is_found_by_each_message_it_shows(exercise) -> None:
    for line in shown_in(exercise).splitlines():
        found = [e for answer in find(line, FAMILIES, EXERCISES) for e in answer.exercises]
        assert exercise in found, line


def test_a_new_exercise_brings_its_own_message(golden: Path) -> None:
    """Nothing but its exercise.toml names it."""
    toml = golden / "exercises" / "exercise-1" / "exercise.toml"
    said = 'errors = ["the frobnicator is * upside down"]\n'
    toml.write_text(said + toml.read_text(encoding="utf-8"), encoding="utf-8")
    exercises = list(Catalogue(golden))
    (answer,) = find("FrobError: The frobnicator is 180 degrees upside down", FAMILIES, exercises)
    assert answer.sure
    assert [e.name for e in answer.exercises] == ["exercise-1"]


def test_a_new_exercise_is_found_by_a_line_of_its_brief(golden: Path) -> None:
    brief = golden / "exercises" / "exercise-1" / "README.md"
    with brief.open("a", encoding="utf-8") as file:
        file.write("\n    FrobError: the frobnicator is upside down\n")
    (answer,) = find("FrobError: the frobnicator is upside down", FAMILIES, Catalogue(golden))
    assert [e.name for e in answer.exercises] == ["exercise-1"]


def test_every_family_speaks_of_claims_that_exist() -> None:
    known = load_all().keys()
    assert {number for family in FAMILIES for number in family.claims} <= known
    assert all(family.question.keys() == {"en", "zh"} for family in FAMILIES)


def test_every_message_belongs_to_one_family() -> None:
    said = [text.lower() for family in FAMILIES for text in family.says]
    assert len(said) == len(set(said))


def test_everything_has_its_place() -> None:
    board = Board(EXERCISES, load_all().values(), {"exercise-1": Verdict.FIXED})
    assert len(list(board)) == 35
    assert board.exercises == EXERCISES
    assert sorted(n for _, cell in board for n in cell.claims) == list(load_all())
    assert board.fixed == 1


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_picture_shows_every_exercise(language: str) -> None:
    board = Board(EXERCISES, load_all().values(), {"exercise-1": Verdict.FIXED})
    drawn = ET.fromstring(picture.draw(board, language))  # noqa: S314 - our own
    titles = [element.text for element in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == len(EXERCISES)
    assert sum(", fixed: " in title for title in titles) == 1


def test_the_command(commands, tmp_path: Path) -> None:
    assert "0 of 1 exercises fixed" in commands.run("map", expect=0).stdout
    target = tmp_path / "map.svg"
    commands.run("map", "--svg", str(target), expect=0)
    assert target.read_text(encoding="utf-8").startswith("<svg")
    assert len(json.loads(commands.run("map", "--json", expect=0).stdout)) == 35
    said = commands.run("map", "--error", "RuntimeError: Trying to backward…", expect=0).stdout
    assert "autograd.Function" in said
    assert "claim 1 (false)" in said
    (answer,) = json.loads(commands.run("map", "--error", "CUDA out of memory", "--json").stdout)
    assert answer["claims"]


def test_the_command_refuses(commands, tmp_path: Path) -> None:
    assert "must end in .svg" in commands.refused("map", "--svg", str(tmp_path / "map.png"))
    assert "cannot be written" in commands.refused("map", "--svg", str(tmp_path / "no" / "m.svg"))
    assert "last line of the traceback" in commands.refused("map", "--error", "xyzzy")
