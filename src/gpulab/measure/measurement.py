"""What every measurement has: cases, columns, a price, the article's figure, a plot."""

from __future__ import annotations

import abc
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gpulab.attempts import Attempt, Ended
from gpulab.model import LabError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Case = dict[str, Any]
Row = dict[str, Any]
OURS, THEIRS = "#2b6cb0", "#a0aec0"  # colours of what was measured and of the article's figures


class FailedError(Exception):
    """A case could not be measured; the message says why."""


@dataclass(frozen=True)
class Column:
    """One column of the table: the row's key, its heading, and how a value is written."""

    key: str
    heading: str
    form: str = "{}"

    def text(self, row: Row) -> str:
        """The cell, empty where the row has no such value."""
        value = row.get(self.key)
        return "" if value is None else self.form.format(value)


class Measurement(abc.ABC):
    """A question, and the cases that answer it.

    Attributes:
        name: of the command and of the script.
        title: the question.
        article: its figure, in words.
        columns: of the table; a row may have more, for the plot and for programs.
        usual_runs: how often each case is run unasked.
        seconds_a_case: about, on two cores.
        mib: of memory, about.
        limit: seconds after which a case has failed.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    article: ClassVar[str]
    columns: ClassVar[tuple[Column, ...]]
    usual_runs: ClassVar[int] = 1
    seconds_a_case: ClassVar[float]
    mib: ClassVar[int]
    limit: ClassVar[float] = 300.0

    @property
    def script(self) -> str:
        """The script's name in `scripts/`."""
        return self.name.replace("-", "_") + ".py"

    def chosen(self, runs: int, only: str) -> list[Case]:
        """The cases whose names hold the word or words `only`, all in turn, `runs` times.

        Raises:
            LabError: there are none.
        """
        if runs < 1:
            raise LabError("--runs must be at least 1.")
        word = re.compile(rf"(?<!\w){re.escape(only)}(?!\w)") if only else re.compile("")
        cases = [case for case in self.cases if word.search(in_words(case))]
        if not cases:
            known = "; ".join(map(in_words, self.cases))
            raise LabError(f"No case names {only!r}; there are: {known}.")
        return cases * runs

    @property
    @abc.abstractmethod
    def cases(self) -> list[Case]:
        """The arguments of the script's `measure`, one dictionary a case."""

    @abc.abstractmethod
    def row(self, case: Case, attempt: Attempt) -> Row:
        """What one attempt showed.

        Raises:
            FailedError: nothing that can be used.
        """

    @abc.abstractmethod
    def merge(self, rows: list[Row]) -> list[Row]:
        """One row for the table and the plot out of the runs of each case."""

    @abc.abstractmethod
    def draw(self, figure: Figure, rows: list[Row]) -> None:
        """Plot merged rows, the article's figures beside them."""


def in_words(case: Case) -> str:
    """`cause nothing, method fork`."""
    return ", ".join(f"{key} {value}" for key, value in case.items())


def answer(attempt: Attempt) -> Any:
    """What the script answered.

    Raises:
        FailedError: it did not.
    """
    if attempt.answered:
        return attempt.answer
    if attempt.error is not None:
        raise FailedError(f"{attempt.error.type}: {attempt.error.message}")
    if attempt.ended is not Ended.EXIT:
        raise FailedError(f"it ended by {attempt.ended}")
    last = attempt.output("stderr").strip().splitlines()[-1:] or [f"exit code {attempt.exit_code}"]
    raise FailedError(last[0])


def group(rows: list[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """The rows by the values of these keys, in the order in which they came."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def middle(rows: list[Row], key: str) -> float:
    """The median of a value."""
    values = sorted(float(row[key]) for row in rows)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
