"""How a check says what it saw: `fail`, `remark`, `note`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NoReturn

MOST_NOTED = 1 << 16  # characters of JSON; what an attempt answered may be noted, and is kept


@dataclass(frozen=True)
class Said:
    """A text by key and the values to fill it with."""

    key: str
    values: dict[str, Any] = field(default_factory=dict)


class CheckFailed(Exception):  # noqa: N818 - a judgement, not an error
    """The check saw something else than it expected."""

    def __init__(self, said: Said) -> None:
        super().__init__(said.key)
        self.said = said


class CannotDecide(Exception):  # noqa: N818
    """The lab could not show what the check needs; nobody's fault."""

    def __init__(self, said: Said) -> None:
        super().__init__(said.key)
        self.said = said


class NotJudged(Exception):  # noqa: N818
    """The check was not run; the text says why."""

    def __init__(self, said: Said) -> None:
        super().__init__(said.key)
        self.said = said


class Notebook:
    """What the check that runs now has said so far."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin a new check."""
        self.remarks: list[Said] = []
        self.notes: dict[str, Any] = {}
        self.attempts: list[dict[str, Any]] = []


notebook = Notebook()


def fail(key: str, **values: Any) -> NoReturn:
    """End the check: not fixed, for the reason `key` of check.toml's rationales."""
    raise CheckFailed(Said(key, values))


def undecided(key: str, **values: Any) -> NoReturn:
    """End the check: the lab could not show it, for the reason `key` of check.toml or the lab's."""
    raise CannotDecide(Said(key, values))


def remark(key: str, **values: Any) -> None:
    """Add a remark (check.toml's remarks) to a check that passes."""
    notebook.remarks.append(Said(key, values))


def note(**values: Any) -> None:
    """Add JSON values to the check's evidence; NaN and infinity, which JSON lacks, as text.

    Raises:
        TypeError: a value is none.
    """
    text = json.dumps(values)
    if len(text) > MOST_NOTED:
        text = json.dumps(dict.fromkeys(values, "left out: too long"))
    notebook.notes |= json.loads(text, parse_constant=str)
