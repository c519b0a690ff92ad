"""The words that every part of the lab shares, as types."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Languages = dict[str, str]
"""One text by language code; "en" is always there."""


class LabError(Exception):
    """Bad input or a fault of the lab: one sentence that says what to do.

    Attributes:
        code: the command's exit code, 1 for bad input (the default), 4 for a fault of the lab.
    """

    def __init__(self, message: str, *, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class Verdict(StrEnum):
    """What a check run concluded."""

    FIXED = "fixed"
    NOT_FIXED = "not-fixed"
    UNDECIDED = "undecided"

    @property
    def exit_code(self) -> int:
        """The exit code of a command that ends with this verdict."""
        return {Verdict.FIXED: 0, Verdict.NOT_FIXED: 2, Verdict.UNDECIDED: 3}[self]


class Outcome(StrEnum):
    """What became of one check."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"  # the check crashed, or the lab could not show what it needs
    NOT_RUN = "not-run"


class Device(StrEnum):
    """What stands behind `cuda` in an attempt."""

    CPU = "cpu"
    CUDA = "cuda"
    REHEARSAL = "rehearsal"


def in_language(texts: Languages, language: str) -> str:
    """The text in `language`, or in English where there is no translation."""
    return texts.get(language) or texts["en"]


@dataclass(frozen=True)
class Message:
    """A text by key, in every language that has it, its values filled in."""

    key: str
    texts: Languages


@dataclass(frozen=True)
class CheckResult:
    """One check's title, outcome and what was observed."""

    name: str
    titles: Languages
    outcome: Outcome
    rationale: Message | None = None
    remarks: tuple[Message, ...] = ()
    evidence: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Hardware:
    """What a verdict was reached on. Fields that do not apply are None."""

    device: Device
    python: str
    torch: str
    cuda: str | None = None
    gpu: str | None = None
    driver: str | None = None
    stack: str | None = None  # "article", "differs (torch 2.14.1)", ...


@dataclass(frozen=True)
class Grade:
    """The result of one check run."""

    exercise: str
    verdict: Verdict
    checks: tuple[CheckResult, ...]
    hardware: Hardware | None
    submission: str  # sha256 of the snapshot
    started: str  # UTC, ISO 8601
    seconds: float
    reason: Message | None = None  # why, where no check could say it
    seed: int | None = None
    level: str = "local"
