"""Exercises and checks are found, read strictly, and begun from a template."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab.catalogue import Catalogue, find_root, load_checks, texts
from gpulab.catalogue.scaffold import scaffold
from gpulab.catalogue.variants import lay_out
from gpulab.grading.verify import check_strictly
from gpulab.model import LabError

ANOTHER = '[wrong_fixes.x]\nabout = ""\ncheck = ""\nrationale = ""'


def exercise_file(root: Path, name: str = "exercise.toml") -> Path:
    return root / "exercises" / "exercise-1" / name


def checks_file(root: Path, name: str = "check.toml") -> Path:
    return root / "checks" / "exercise-1" / name


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def load(root: Path):
    catalogue = Catalogue(root)
    return load_checks(root, catalogue.find("1"))


def refusal(root: Path) -> str:
    with pytest.raises(LabError) as refused:
        load(root)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("name", ["1", "exercise-1", "Exercise_1", " exercise-1 ", "01"])
def test_names_of_an_exercise(golden: Path, name: str) -> None:
    assert Catalogue(golden).find(name).number == 1


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("exercse-1", "did you mean exercise-1?"),
        ("exercise-9", "did you mean exercise-1?"),
        ("nothing alike", "`invoke list` shows them all"),
        ("", "`invoke list` shows them all"),
    ],
)
def test_an_unknown_exercise(golden: Path, name: str, advice: str) -> None:
    with pytest.raises(LabError, match=re.escape(advice)):
        Catalogue(golden).find(name)


def test_exercises_come_in_the_order_of_their_numbers(golden: Path) -> None:
    for number in (10, 2):
        lay_out_like_first(golden, number)
    (golden / "exercises" / ".hidden").mkdir()
    assert [exercise.number for exercise in Catalogue(golden)] == [1, 2, 10]


def lay_out_like_first(root: Path, number: int) -> None:
    first = Catalogue(root).find("1")
    folder = lay_out(first, root / "exercises" / f"exercise-{number}")
    for name in ("exercise.toml", "hints.md"):
        (folder / name).write_bytes((first.folder / name).read_bytes())


@pytest.mark.parametrize("name", ["notes.txt", "exercise-0", "exercise-1b", "exercise-1000"])
def test_a_stray_among_the_exercises(golden: Path, name: str) -> None:
    (golden / "exercises" / name).touch()
    assert "name it exercise-N or move it away" in refusal(golden)


@pytest.mark.parametrize("name", ["notes.txt", "conftest.py", "solutions.zip"])
def test_a_stray_among_the_checks(golden: Path, name: str) -> None:
    checks_file(golden, name).touch()
    assert f"{name} does not belong there" in refusal(golden)


@pytest.mark.parametrize("name", ["exercise.toml", "README.md", "hints.md", "train.py"])
def test_a_missing_file_of_an_exercise(golden: Path, name: str) -> None:
    exercise_file(golden, name).unlink()
    assert name in refusal(golden)


@pytest.mark.parametrize("name", ["check.toml", "test_fix.py", "debrief.md"])
def test_a_missing_file_of_the_checks(golden: Path, name: str) -> None:
    checks_file(golden, name).unlink()
    assert name in refusal(golden)


def test_an_empty_text(golden: Path) -> None:
    exercise_file(golden, "README.md").write_text(" \n")
    assert "README.md is empty" in refusal(golden)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("level = 1", "level = 4", "`level` must be 1, 2 or 3, not 4"),
        ("minutes = 1", "minutes = 0", "`minutes` must be more than 0"),
        ("seconds = 6", "seconds = nan", "`seconds` must be more than 0"),
        ("seconds = 6", "seconds = inf", "`seconds` must be more than 0"),
        ("memory_mib = 400", "memory_mib = -1", "`memory_mib` must be more than 0"),
        ('torch = ">=2.0"', 'torch = "new"', "`needs.torch` is no version range"),
        ('device = "any"', 'device = "tpu"', "must be one of any, cuda, gpu"),
        ('script = "train.py"', 'script = "../train.py"', "`script` must be a plain name"),
        ('script = "train.py"', 'script = "main.py"', "main.py is missing"),
        ('en = "The', 'de = "The', "`title` has no English text"),
        ("zh =", "zn =", "unknown language `zn`"),
    ],
)
def test_facts_that_make_no_sense(golden: Path, old: str, new: str, said: str) -> None:
    replace(exercise_file(golden), old, new)
    assert said in refusal(golden)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('reference = "multiply"', 'reference = "divide"', "'divide', which is no solution"),
        ("[solutions.multiply]", "[solutions.divide]", "is not in"),
        ("[wrong_fixes.dies]", f"{ANOTHER}\n[wrong_fixes.dies]", "is missing, though"),
        ('check = "test_doubles"', 'check = "test_triples"', "no check 'test_triples'"),
        ("[titles.test_script_ends]", "[titles.test_x]", "title for 'test_x'"),
        ('remark = "slow"', 'remark = "quick"', "`solutions.add_slowly.remark` is no key"),
        ('about = "raises"\n', "", "`about` is missing"),
        ("{given} doubled", "{given doubled", "has a brace without its partner"),
        ("{given} doubled", "{} doubled", "{} is no name"),
        ('en = "It takes', 'zh = "It takes', "'pitfall' has no English text"),
        ('en = "An empty', 'fr = "x"\nen = "An empty', "unknown language `fr`"),
    ],
)  # fmt: skip
def test_names_that_do_not_resolve(golden: Path, old: str, new: str, said: str) -> None:
    replace(checks_file(golden), old, new)
    assert said in refusal(golden)


def test_checks_need_titles(golden: Path) -> None:
    replace(checks_file(golden, "test_fix.py"), '    """The script runs to its end."""\n', "")
    assert "test_script_ends has no docstring" in refusal(golden)


def test_a_check_file_without_checks_and_one_that_is_no_python(golden: Path) -> None:
    checks_file(golden, "test_fix.py").write_text("x = 1\n")
    assert "has no check" in refusal(golden)
    checks_file(golden, "test_fix.py").write_text("def (\n")
    assert "cannot be read" in refusal(golden)


def test_titles_in_the_order_of_the_file(golden: Path) -> None:
    titles = load(golden).titles
    assert list(titles) == ["test_script_ends", "test_doubles", "test_empty", "test_on_gpu"]
    assert titles["test_script_ends"] == {
        "en": "The script runs to its end",
        "zh": "脚本运行到结束",
    }


@pytest.mark.parametrize("count", [2, 4])
def test_hints_are_three(golden: Path, count: int) -> None:
    text = "# Hints\n" + "\n## A\n\nword\n" * count
    exercise_file(golden, "hints.md").write_text(text)
    assert f"must have 3 sections under `## ` headings, none empty; it has {count}" in refusal(
        golden
    )


def test_an_empty_hint(golden: Path) -> None:
    replace(exercise_file(golden, "hints.md"), "At `double`.", "")
    assert "it has 2" in refusal(golden)


def test_a_translation_is_held_to_the_same(golden: Path) -> None:
    exercise_file(golden, "hints.zh.md").write_text("## 一\n\n字\n", encoding="utf-8")
    assert "(zh) must have 3 sections" in refusal(golden)


def test_a_missing_translation_is_english(golden: Path) -> None:
    exercise = Catalogue(golden).find("1")
    assert exercise.brief("zh") == exercise.brief("en")
    exercise_file(golden, "README.zh.md").write_text("# 题目\n", encoding="utf-8")
    assert exercise.brief("zh") == "# 题目\n"


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"GPULAB_LANG": "zh"}, "zh"),
        ({"GPULAB_LANG": "en", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"GPULAB_LANG": "xx"}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "", "LC_MESSAGES": "zh_TW@x", "LANG": "C"}, "zh"),
    ],
)
def test_the_language(monkeypatch, environment: dict[str, str], language: str) -> None:
    for name in ("GPULAB_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert texts.chosen_language() == language


def test_the_root(golden: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GPULAB_ROOT", str(tmp_path))
    with pytest.raises(LabError, match="has no exercises/ folder"):
        find_root()
    monkeypatch.setenv("GPULAB_ROOT", str(golden))
    assert find_root() == golden
    monkeypatch.delenv("GPULAB_ROOT")
    monkeypatch.chdir(golden / "checks" / "exercise-1")
    assert find_root() == golden


def test_attendees_get_neither_facts_nor_hints(golden: Path) -> None:
    exercise_file(golden, "__pycache__").mkdir()
    exercise_file(golden, "__pycache__/x.pyc").touch()
    (golden / "exercises/exercise-1/data").mkdir()
    exercise_file(golden, "data/a.txt").touch()
    names = [str(name) for name in Catalogue(golden).find("1").shipped_files()]
    assert names == ["README.md", "data/a.txt", "train.py"]


def test_a_variant_lies_over_the_shipped_files(golden: Path, tmp_path: Path) -> None:
    checks = load(golden)
    folder = lay_out(checks.exercise, tmp_path / "laid", checks.reference)
    assert (folder / "train.py").read_bytes() == (checks.reference / "train.py").read_bytes()
    assert (folder / "README.md").is_file()


def test_a_new_exercise_is_whole_but_unfinished(golden: Path) -> None:
    exercise, checks = scaffold(Catalogue(golden), "  Loss is\tNaN ")
    assert (exercise.name, checks.name) == ("exercise-2", "exercise-2")
    catalogue = Catalogue(golden)
    found = load_checks(golden, catalogue.find("2"))
    assert found.exercise.facts.title["en"] == "Loss is NaN"
    with pytest.raises(LabError) as refused:
        check_strictly(found)
    named = str(refused.value)
    for path in (*exercise.iterdir(), checks / "test_fix.py", checks / "solutions/first/train.py"):
        assert f"{path} still says UNFINISHED" in named


def test_an_option_is_no_title(golden: Path) -> None:
    with pytest.raises(LabError, match="Give the exercise a title"):
        scaffold(Catalogue(golden), "--help")


@settings(max_examples=30, deadline=None)
@given(title=st.text(min_size=1))
def test_any_title_makes_valid_toml(tmp_path_factory, title: str) -> None:
    root = tmp_path_factory.mktemp("root")
    (root / "exercises").mkdir()
    try:
        scaffold(Catalogue(root), title)
    except LabError as refused:
        assert "Give the exercise a title" in str(refused)  # noqa: PT017 - most titles pass
        return
    assert Catalogue(root).find("1").facts.title["en"]


def test_both_folders_of_a_new_exercise_or_none(golden: Path) -> None:
    (golden / "checks" / "exercise-2").mkdir()
    with pytest.raises(LabError, match="File exists"):
        scaffold(Catalogue(golden), "A title")
    assert not (golden / "exercises" / "exercise-2").exists()


def test_the_number_of_a_new_exercise_needs_no_other_to_be_whole(golden: Path) -> None:
    exercise_file(golden).write_text("broken")
    assert scaffold(Catalogue(golden), "A title")[0].name == "exercise-2"


def test_a_root_without_exercises(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="run inside the lab's folder"):
        Catalogue(tmp_path).find("1")


def test_reading_the_catalogue_imports_no_torch(golden: Path) -> None:
    code = (
        "import pathlib, sys; from gpulab.catalogue import Catalogue;"
        "list(Catalogue(pathlib.Path(sys.argv[1]))); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, golden], check=False).returncode == 0
