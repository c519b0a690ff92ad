"""The catalogue's texts are complete, in both languages, and give nothing away."""

import ast
import re
from pathlib import Path

import pytest

from gpulab.catalogue import CheckFile, Exercise, load_checks
from gpulab.catalogue.exercises import Catalogue
from gpulab.catalogue.texts import LANGUAGES
from gpulab.evidence.words import lab_texts
from gpulab.grading.verify import unfinished

ROOT = Path(__file__).parents[2]
LONGEST_SCRIPT = 120

every_exercise = pytest.mark.parametrize("exercise", list(Catalogue(ROOT)), ids=lambda e: e.name)


def _checks(exercise: Exercise) -> CheckFile:
    return load_checks(ROOT, exercise)


@every_exercise
def test_exercise_is_finished(exercise: Exercise) -> None:
    assert list(unfinished(_checks(exercise))) == []


@every_exercise
@pytest.mark.parametrize("language", [code for code in LANGUAGES if code != "en"])
def test_nothing_is_untranslated(exercise: Exercise, language: str) -> None:
    checks = _checks(exercise)
    files = [exercise.folder / f"{stem}.{language}.md" for stem in ("README", "hints")]
    files.append(checks.folder / f"debrief.{language}.md")
    assert [path for path in files if not path.is_file()] == []
    assert len(exercise.hints(language)) == len(exercise.hints("en"))
    table = checks.table
    texts = {
        "title": exercise.facts.title,
        "pitfall": table.pitfall,
        **checks.titles,
        **table.rationales,
        **table.remarks,
    }
    assert [key for key, text in texts.items() if language not in text] == []


@every_exercise
def test_translations_name_the_same_values(exercise: Exercise) -> None:
    table = _checks(exercise).table
    for key, text in (table.rationales | table.remarks).items():
        named = {code: set(re.findall(r"{(\w+)", words)) for code, words in text.items()}
        assert len({frozenset(names) for names in named.values()}) == 1, (key, named)


@every_exercise
def test_script_is_short(exercise: Exercise) -> None:
    script = exercise.folder / exercise.facts.script
    assert len(script.read_text(encoding="utf-8").splitlines()) < LONGEST_SCRIPT


@every_exercise
def test_every_rationale_is_used(exercise: Exercise) -> None:
    """A text that no check says is dead, a key that no text has is a crash."""
    checks = _checks(exercise)
    source = checks.test_file.read_text(encoding="utf-8")
    literals = {n.value for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Constant)}
    said = set(re.findall(r"""\bfail\(\s*["'](\w+)["']""", source))
    remarked = set(re.findall(r"""\bremark\(\s*["'](\w+)["']""", source))
    assert said - set(lab_texts()) <= set(checks.table.rationales) <= literals
    assert remarked == set(checks.table.remarks)
