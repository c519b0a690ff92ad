"""Verdicts and hints taken, kept in SQLite. Times are UTC."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpulab import wire
from gpulab.model import Grade, LabError, Verdict

_SCHEMA = """
CREATE TABLE IF NOT EXISTS grades (
    id INTEGER PRIMARY KEY,
    exercise TEXT NOT NULL,
    verdict TEXT NOT NULL,
    submission TEXT NOT NULL,
    started TEXT NOT NULL,
    grade TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS by_exercise ON grades (exercise, id);
CREATE TABLE IF NOT EXISTS hints (
    exercise TEXT NOT NULL,
    number INTEGER NOT NULL,
    taken TEXT NOT NULL,
    PRIMARY KEY (exercise, number)
) STRICT;
"""


PAGE = 50  # grades that are held in memory at once


class Records:
    """One attendee's verdicts and hints.

    `wal` lets others read while one writes; only for a local disk.
    """

    def __init__(self, path: Path, *, wal: bool = False) -> None:
        self.path = path
        self._wal = wal

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self.path, timeout=30)
            try:
                if self._wal:
                    connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(_SCHEMA)
                with connection:
                    yield connection
            finally:
                connection.close()
        except (sqlite3.Error, OSError) as error:
            raise LabError(
                f"The record {self.path} cannot be used ({error}); "
                "make its folder writable, free some space, or move it away.",
                code=4,
            ) from None

    def add(self, grade: Grade) -> None:
        """Keep a grade.

        Raises:
            LabError: the record cannot be written.
        """
        with self._open() as connection:
            connection.execute(
                "INSERT INTO grades (exercise, verdict, submission, started, grade)"
                " VALUES (?, ?, ?, ?, ?)",
                (
                    grade.exercise,
                    grade.verdict.value,
                    grade.submission,
                    grade.started,
                    json.dumps(wire.to_json(grade)),
                ),
            )

    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """What a query finds; nothing where nothing was ever recorded, and no file is made."""
        if not os.path.lexists(self.path):
            return []
        with self._open() as connection:
            return connection.execute(query, values).fetchall()

    def grades(self, exercise: str | None = None) -> list[Grade]:
        """All grades, oldest first."""
        rows = self._rows(
            "SELECT grade FROM grades WHERE ?1 IS NULL OR exercise = ?1 ORDER BY id", (exercise,)
        )
        return [wire.grade(json.loads(text)) for (text,) in rows]

    def pages(self) -> Iterator[str]:
        """All grades, oldest first, as the inside of a JSON list: some of them at a time."""
        last, separator = 0, ""
        while rows := self._rows(
            "SELECT id, grade FROM grades WHERE id > ? ORDER BY id LIMIT ?", (last, PAGE)
        ):
            yield separator + ",\n".join(text for _, text in rows)
            last, separator = rows[-1][0], ",\n"

    def counts(self) -> dict[str, int]:
        """By exercise: how often it was judged."""
        return dict(self._rows("SELECT exercise, count(*) FROM grades GROUP BY exercise"))

    def best(self) -> dict[str, Verdict]:
        """By exercise: `fixed` once it has been, else the latest verdict."""
        best: dict[str, Verdict] = {}
        for exercise, verdict in self._rows("SELECT exercise, verdict FROM grades ORDER BY id"):
            if best.get(exercise) is not Verdict.FIXED:
                best[exercise] = Verdict(verdict)
        return best

    def take_hint(self, exercise: str, number: int) -> None:
        """Note that a hint was shown."""
        with self._open() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO hints VALUES (?, ?, ?)",
                (exercise, number, datetime.now(UTC).isoformat(timespec="seconds")),
            )

    def hints(self, exercise: str) -> int:
        """The highest hint taken; 0 for none."""
        rows = self._rows("SELECT max(number) FROM hints WHERE exercise = ?", (exercise,))
        return max((number or 0 for (number,) in rows), default=0)

    def hints_taken(self) -> dict[str, int]:
        """By exercise: the highest hint taken."""
        return dict(self._rows("SELECT exercise, max(number) FROM hints GROUP BY exercise"))

    def hint_times(self) -> list[dict[str, Any]]:
        """Every hint taken, and when."""
        rows = self._rows("SELECT exercise, number, taken FROM hints ORDER BY taken, number")
        return [{"exercise": name, "number": number, "taken": at} for name, number, at in rows]
