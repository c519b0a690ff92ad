"""The tour: its rhythm, what it shows, its keys, its notebook."""

import json
import os
import pty
import re
import resource
import sys
import time
from pathlib import Path

import pytest

from gpulab.claims import load_all
from gpulab.model import LabError
from gpulab.tour import Live, load, make_notebook
from gpulab.tour.pace import LEAST, NEXT, PAUSE, QUIT, Pace, Quit

ENGLISH = load("en")


# --- the source --------------------------------------------------------------------------------


def test_the_rhythm_of_the_article() -> None:
    by_title = {scene.title: scene for scene in ENGLISH}
    assert [step.seconds for step in by_title["Tensor"].steps] == [8, 7, 7]
    assert by_title["The training loop"].seconds == 58
    assert sum(scene.seconds for scene in ENGLISH) < 240


def test_the_claims_exist() -> None:
    claims = {number for scene in ENGLISH for step in scene.steps for number in step.claims}
    assert claims <= load_all().keys()


def test_both_languages_run_the_same() -> None:
    def runs(scene):
        return [(step.seconds, step.claims, step.code, step.shown) for step in scene.steps]

    assert list(map(runs, load("zh"))) == list(map(runs, ENGLISH))


def test_a_step_without_its_seconds(tmp_path: Path) -> None:
    (tmp_path / "tour.md").write_text("## A\n\n### B\n\nC\n", encoding="utf-8")
    with pytest.raises(LabError, match="`### B`: write it as"):
        load("en", tmp_path)


# --- what it shows -----------------------------------------------------------------------------


def test_every_statement_is_true() -> None:
    with Live(Path(sys.executable)) as live:
        for scene in ENGLISH:
            for step in scene.steps:
                pattern = re.escape(step.shown).replace(r"\.\.\.", ".*")
                shown = live.run(step.code)
                assert re.fullmatch(pattern, shown), (step.title, shown)


def test_the_last_expression_is_shown_and_workers_keep_silent() -> None:
    with Live(Path(sys.executable)) as live:
        assert live.run("x = 1\nx + 1") == "2\n"
        assert live.run("print(x); None") == "1\n"
        assert live.run("import os; os.system('echo noise')") == "0\n"
        with pytest.raises(LabError, match="NameError: name 'y' is not defined"):
            live.run("y")


def test_a_python_that_ends() -> None:
    with Live(Path("/bin/true")) as live, pytest.raises(LabError, match="in the middle"):
        live.run("1")


def test_the_notebook_runs() -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    book = nbformat.from_dict(make_notebook(ENGLISH, load_all()))
    nbformat.validate(book)
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
    outputs = ["".join(o["text"] for o in c.outputs) for c in book.cells if c.cell_type == "code"]
    wanted = [step.shown for scene in ENGLISH for step in scene.steps]
    for shown, expected in zip(outputs, wanted, strict=True):
        assert re.fullmatch(re.escape(expected).replace(r"\.\.\.", ".*"), shown)


# --- the pace ----------------------------------------------------------------------------------


class Clock:
    """A clock that waiting for a key moves on; keys by the second in which they are pressed."""

    def __init__(self, keys: dict[int, str] | None = None) -> None:
        self.time, self._keys = 0.0, dict(keys or {})

    def __call__(self) -> float:
        return self.time

    def wait(self, seconds: float) -> str:
        self.time += seconds
        return self._keys.pop(int(self.time), "")

    def stay(self, pace: Pace, seconds: float) -> None:
        pace.stay(seconds, lambda: None)


def test_what_takes_long_is_made_up_for() -> None:
    clock = Clock()
    pace = Pace(clock.wait, clock)
    clock.time += 5  # the first step's code
    clock.stay(pace, 3)
    assert clock.time == pytest.approx(5 + LEAST)
    clock.stay(pace, 7)
    assert clock.time == pytest.approx(10)


def test_it_ends_within_four_minutes_on_a_slow_machine() -> None:
    clock = Clock()
    pace = Pace(clock.wait, clock)
    clock.time += 8  # until torch is imported
    for scene in ENGLISH:
        for step in scene.steps:
            clock.time += 1.5  # the step's code
            clock.stay(pace, step.seconds)
    assert clock.time < 240


def test_keys() -> None:
    clock = Clock({2: PAUSE, 30: PAUSE, 40: NEXT})
    pace = Pace(clock.wait, clock)
    clock.stay(pace, 10)
    assert clock.time == pytest.approx(38, abs=1)
    assert pace.elapsed == pytest.approx(10, abs=1)
    clock.stay(pace, 100)
    assert clock.time == pytest.approx(40, abs=1)
    assert pace.elapsed == pytest.approx(110, abs=1)
    with pytest.raises(Quit):
        Clock.stay(clock, Pace(Clock({0: QUIT}).wait, clock), 1)


# --- the command -------------------------------------------------------------------------------


def test_fast(commands) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = commands.run("tour", "--fast", expect=0).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "Why a loss is scaled" in said
    assert "claim 5, false" in said
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < 25, "processor seconds; the promise is 30 s on an idle machine"


def test_keys_on_a_terminal(commands) -> None:
    """`n` goes on, the space bar pauses, `q` ends."""
    todo = [
        ("a training loop is made of", b"n"),
        ("ways to make", b" "),
        ("paused", b" n"),
        ("adds", b"q"),
    ]
    ours, theirs = pty.openpty()
    process = commands.start("tour", stdout=theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    seen, deadline = "", time.monotonic() + 100
    while time.monotonic() < deadline:
        try:
            seen += os.read(ours, 1 << 16).decode("utf-8", "replace")
        except OSError:  # the other end is closed
            break
        if todo and todo[0][0] in seen:
            os.write(ours, todo.pop(0)[1])
    os.close(ours)  # where it has not ended, it ends now: its terminal is gone
    assert process.wait(timeout=60) == 0, (todo, seen[-1500:])
    assert not todo
    assert "Space pauses" in seen
    assert "Until next time" in seen


def test_the_notebook_is_written_once(commands, tmp_path: Path) -> None:
    target = tmp_path / "tour.ipynb"
    commands.run("tour", "--notebook", str(target), expect=0)
    assert json.loads(target.read_text(encoding="utf-8"))["nbformat"] == 4
    assert "exists already" in commands.refused("tour", "--notebook", str(target))
    assert "must end in .ipynb" in commands.refused("tour", "--notebook", "tour.py")
    said = commands.refused("tour", "--notebook", str(tmp_path / "no" / "tour.ipynb"))
    assert "cannot be written" in said
