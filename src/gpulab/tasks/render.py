"""Verdicts in the terminal: while they are made, and afterwards."""

from __future__ import annotations

import unicodedata
from datetime import datetime
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from gpulab.model import CheckResult, Device, Grade, Hardware, Languages, Outcome, in_language

STYLES = {
    "fixed": "bold green",
    "not-fixed": "bold red",
    "undecided": "bold yellow",
    "passed": "green",
    "failed": "red",
    "not-run": "dim",
}
SIGNS = {Outcome.PASSED: "✓", Outcome.FAILED: "✗", Outcome.UNDECIDED: "?", Outcome.NOT_RUN: "·"}


def plain(text: str) -> str:
    """Untrusted text without control characters, which could repaint the terminal."""
    return "".join(c if c == "\t" or unicodedata.category(c)[0] != "C" else "�" for c in text)


def markdown(text: str) -> RenderableType:
    """A brief, a hint or a debrief."""
    from rich.markdown import Markdown  # noqa: PLC0415 - slow to import, and most checks show none

    return Markdown(text)


def check_line(result: CheckResult, language: str) -> Text:
    """One judged check: sign, title, and what was observed."""
    style = STYLES[result.outcome]
    line = Text(f"{SIGNS[result.outcome]} {in_language(result.titles, language)}", style=style)
    for said in (result.rationale, *result.remarks):
        if said is not None:
            line.append(f"\n    {plain(in_language(said.texts, language))}", style="default")
    return line


def hardware_line(hardware: Hardware) -> str:
    """What the verdict was reached on, in one line."""
    parts = [hardware.device.value]
    if hardware.device is Device.REHEARSAL:
        parts = ["rehearsal (no GPU: not confirmed on hardware)"]
    parts += [hardware.gpu or "", f"driver {hardware.driver}" if hardware.driver else ""]
    parts += [f"torch {hardware.torch}", f"Python {hardware.python}", f"stack: {hardware.stack}"]
    return " · ".join(part for part in parts if part)


def verdict(grade: Grade, language: str) -> Text:
    """The verdict with its reason, and what it was reached on."""
    text = Text(f"{grade.exercise}: {grade.verdict}", style=STYLES[grade.verdict])
    if grade.reason is not None:
        text.append(f"\n    {plain(in_language(grade.reason.texts, language))}", style="default")
    when = datetime.fromisoformat(grade.started).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    text.append(f"\n{when} · {grade.seconds:.1f} s", style="dim")
    if grade.hardware is not None:
        text.append(f" · {hardware_line(grade.hardware)}", style="dim")
    return text


class LiveCheck:
    """Shows a check run as its events come; on a pipe, only the judged checks."""

    def __init__(self, console: Console, language: str) -> None:
        self._language = language
        self._titles: dict[str, Languages] = {}
        self._running: str | None = None
        self._line = self._memory = ""
        self._ahead = 0  # checks that come before this one
        self._console = console
        self._live = Live(console=console, transient=True, get_renderable=self._render)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __call__(self, event: dict[str, Any]) -> None:
        """Take one event of the grading process."""
        kind = event["event"]
        if kind == "queued":
            self._ahead = event["ahead"]
        elif kind == "plan":
            self._ahead = 0
            self._titles = dict(event["checks"])
        elif kind == "started":
            self._running, self._line = event["name"], ""
        elif kind == "line":
            self._line = plain(event["text"])
        elif kind == "look":
            self._memory = f"{event['at']:.0f} s, {event['private'] >> 20} MiB"

    def judged(self, result: CheckResult) -> None:
        """Print a judged check above the live part."""
        self._running = None
        self._console.print(check_line(result, self._language), soft_wrap=True)

    def _render(self) -> RenderableType:
        if self._ahead:
            return Spinner("dots", Text(f"{self._ahead} checks come before yours"))
        title = self._titles.get(self._running or "", {"en": "preparing"})
        running = Spinner("dots", Text(f"{in_language(title, self._language)}  {self._memory}"))
        return Group(running, Text(f"    {self._line}", style="dim", no_wrap=True))
