"""What an attendee's program says never reaches the terminal as more than text."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from gpulab.model import CheckResult, Device, Grade, Hardware, Message, Outcome, Verdict
from gpulab.tasks.render import LiveCheck, check_line, plain, verdict

HOSTILE = "a\x1b[2J\x1b]0;title\x07b\r\x9b31m\u202ec[bold red]d[/bold red]:smile:\u200b\n✓ faked"
HARDWARE = Hardware(Device.REHEARSAL, "3.11.7", "2.14.1", stack="current")


def printed(renderable, *, terminal: bool = True) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, color_system=None, width=400)
    console.print(renderable, soft_wrap=True)
    return out.getvalue()


def result(said: str, outcome: Outcome = Outcome.FAILED) -> CheckResult:
    return CheckResult("test_x", {"en": "Title", "zh": "标题"}, outcome, Message("k", {"en": said}))


def test_plain_keeps_text_and_drops_control() -> None:
    assert plain("中文 é\tx") == "中文 é\tx"
    assert plain("a\x1bb\rc\nd\x9be\u202ef\ud800") == "a�b�c�d�e�f�"


@given(st.text())
def test_plain_of_anything_is_printable(text: str) -> None:
    safe = plain(text)
    assert len(safe) == len(text)
    assert not set(safe) & set(map(chr, [*range(9), *range(10, 32), *range(127, 160)]))


def test_a_rationale_is_one_line_of_text() -> None:
    shown = printed(check_line(result(HOSTILE), "en"))
    assert not set("\x1b\x07\r\x9b\u202e") & set(shown)
    assert "[bold red]d[/bold red]:smile:" in shown
    assert len(shown.strip().splitlines()) == 2


def test_a_remark_too() -> None:
    judged = CheckResult("x", {"en": "T"}, Outcome.PASSED, remarks=(Message("k", {"en": HOSTILE}),))
    assert "\x1b" not in printed(check_line(judged, "en"))


def test_a_verdict_names_its_hardware_and_its_reason() -> None:
    grade = Grade(
        "exercise-1",
        Verdict.UNDECIDED,
        (),
        HARDWARE,
        "hash",
        "2025-01-01T00:00:00+00:00",
        1.25,
        Message("k", {"en": HOSTILE}),
    )
    shown = printed(verdict(grade, "en"))
    assert "\x1b" not in shown
    assert shown.startswith("exercise-1: undecided\n")
    for words in ("rehearsal (no GPU: not confirmed on hardware)", "torch 2.14.1", "1.2 s"):
        assert words in shown


def test_the_language_of_titles() -> None:
    assert "标题" in printed(check_line(result("x"), "zh"))
    assert "Title" in printed(check_line(result("x"), "fr"))


@pytest.mark.parametrize("terminal", [True, False])
def test_a_check_run_as_it_comes(terminal: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, color_system=None, width=100)
    with LiveCheck(console, "en") as live:
        live({"event": "plan", "checks": [["test_x", {"en": "Title"}]]})
        live({"event": "started", "name": "test_x"})
        live({"event": "line", "at": 0.1, "stream": "stdout", "text": HOSTILE})
        live({"event": "look", "at": 0.1, "private": 3 << 20, "gpu": None})
        live({"event": "something new"})
        if terminal:
            live._live.refresh()
        live.judged(result("said"))
    shown = out.getvalue()
    assert "✗ Title\n    said" in shown
    assert "\x1b[2J" not in shown
    assert "\x1b]0;" not in shown
    assert ("\x1b" in shown) is terminal
