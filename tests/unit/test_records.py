"""The record of verdicts survives two writers, a broken file and a read-only folder."""

import os
import sqlite3
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab.grading import Records
from gpulab.model import (
    CheckResult,
    Device,
    Grade,
    Hardware,
    LabError,
    Message,
    Outcome,
    Verdict,
)


def grade(verdict: Verdict = Verdict.FIXED, exercise: str = "exercise-1", **facts) -> Grade:
    return Grade(exercise, verdict, (), None, "hash", "2025-01-01T00:00:00+00:00", 1.0, **facts)


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "work" / ".lab" / "records.sqlite")


def test_nothing_recorded_yet_makes_no_file(records: Records) -> None:
    assert (records.grades(), records.best(), records.counts()) == ([], {}, {})
    assert records.hints("exercise-1") == 0
    assert not records.path.parent.exists()


text = st.text(st.characters(exclude_categories=["Cs"]))
message = st.builds(Message, text, st.dictionaries(text, text))
evidence = st.dictionaries(text, st.integers() | text | st.lists(st.floats(allow_nan=False)))
result = st.builds(
    CheckResult,
    text,
    st.dictionaries(text, text),
    st.sampled_from(Outcome),
    st.none() | message,
    st.lists(message).map(tuple),
    evidence,
)
hardware = st.builds(Hardware, st.sampled_from(Device), text, text, st.none() | text)
grades = st.builds(
    Grade,
    text,
    st.sampled_from(Verdict),
    st.lists(result, max_size=3).map(tuple),
    st.none() | hardware,
    text,
    text,
    st.floats(0, 1000),
    st.none() | message,
    st.none() | st.integers(0, 2**63),
)


@settings(max_examples=25, deadline=None)
@given(grades)
def test_a_grade_comes_back_as_it_was(tmp_path_factory, found: Grade) -> None:
    records = Records(tmp_path_factory.mktemp("records") / "records.sqlite")
    records.add(found)
    assert records.grades() == [found]


def test_best_is_fixed_once_it_has_been(records: Records) -> None:
    for verdict in (Verdict.NOT_FIXED, Verdict.FIXED, Verdict.UNDECIDED):
        records.add(grade(verdict))
    for verdict in (Verdict.NOT_FIXED, Verdict.UNDECIDED):
        records.add(grade(verdict, "exercise-2"))
    assert records.best() == {"exercise-1": Verdict.FIXED, "exercise-2": Verdict.UNDECIDED}
    assert records.counts() == {"exercise-1": 3, "exercise-2": 2}
    assert [found.verdict for found in records.grades("exercise-2")] == ["not-fixed", "undecided"]


def test_hints_count_once(records: Records) -> None:
    for number in (1, 2, 2, 1):
        records.take_hint("exercise-1", number)
    assert records.hints("exercise-1") == 2
    assert records.hints("exercise-2") == 0


def test_two_writers_at_once(records: Records) -> None:
    def write() -> None:
        for _ in range(25):
            Records(records.path).add(grade())

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert records.counts() == {"exercise-1": 100}


def test_a_writer_that_dies_in_the_middle_loses_its_own_only(records: Records) -> None:
    records.add(grade())
    connection = sqlite3.connect(records.path)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM grades")
    connection.close()  # no commit
    assert len(records.grades()) == 1


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"SQLite format 3\0broken"])
def test_a_broken_file_is_named_and_kept(records: Records, content: bytes) -> None:
    records.path.parent.mkdir(parents=True)
    records.path.write_bytes(content)
    for use in (records.best, records.counts, lambda: records.add(grade())):
        with pytest.raises(LabError) as refused:
            use()
        assert str(records.path) in str(refused.value)
        assert "move it away" in str(refused.value)
    assert records.path.read_bytes() == content


def test_a_read_only_folder(records: Records, disks) -> None:
    records.add(grade())
    disks.read_only(records.path.parent)
    assert len(records.grades()) == 1
    with pytest.raises(LabError, match="make its folder writable"):
        records.add(grade())


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LabError, match="cannot be used"):
        Records(tmp_path / "file" / "records.sqlite").add(grade())


def test_a_full_disk(tmp_path: Path, disks) -> None:
    if disks.full(tmp_path / "small"):
        pytest.skip("no right to mount a small disk; the commands' tests limit the file size")
    with pytest.raises(LabError, match="free some space"):
        Records(tmp_path / "small" / "records.sqlite").add(grade())
    assert os.path.lexists(tmp_path / "small" / "ballast")
