"""Memory curves, in the terminal and as files."""

import importlib.util
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.model import LabError
from gpulab.observe import MemorySample
from gpulab.tasks import curve

SAMPLES = [MemorySample(at / 10, at << 20, 0, None) for at in range(100)]


def test_a_rising_curve_rises() -> None:
    rows = curve.draw({"now": SAMPLES}).plain.splitlines()
    assert len(rows) == curve.HEIGHT
    assert rows[0].endswith(" 99 MiB")
    assert rows[-1].endswith(" 10 s")
    filled = [sum(row[column] != " " for row in rows) for column in range(curve.WIDTH)]
    assert filled == sorted(filled)


def test_two_curves_share_one_scale() -> None:
    half = [MemorySample(s.at, s.private // 2, 0, None) for s in SAMPLES[:50]]
    rows = curve.draw({"before": SAMPLES, "now": half}).plain.splitlines()
    assert (rows[0], rows[curve.HEIGHT + 1]) == ("before", "now")
    now = rows[curve.HEIGHT + 2 :]
    assert [row[: curve.WIDTH].strip() for row in now[: curve.HEIGHT // 2]] == [""] * 3
    assert all(row[curve.WIDTH // 2 : curve.WIDTH].strip() == "" for row in now)


def test_nothing_measured() -> None:
    assert curve.draw({"now": []}).plain == "(no memory was measured)"


@given(st.lists(st.tuples(st.floats(0, 1e4), st.integers(0, 2**40)), min_size=1))
def test_any_samples_can_be_drawn(pairs: list[tuple[float, int]]) -> None:
    samples = [MemorySample(at, private, 0, None) for at, private in sorted(pairs)]
    rows = curve.draw({"now": samples}).plain.splitlines()
    assert len(rows) == curve.HEIGHT
    assert all(len(row) >= curve.WIDTH for row in rows)


def test_samples_from_evidence() -> None:
    found = curve.samples([[0.1, 5.0, None], [0.2, 6, 7]])
    assert [(sample.at, sample.private) for sample in found] == [(0.1, 5), (0.2, 6)]


@pytest.mark.parametrize(
    ("name", "begins"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("A.PNG", b"\x89PNG")]
)
def test_a_file(tmp_path: Path, name: str, begins: bytes) -> None:
    pytest.importorskip("matplotlib", reason="plots are an extra")
    curve.save(tmp_path / name, {"before": SAMPLES, "after": SAMPLES[::-1]})
    assert (tmp_path / name).read_bytes().startswith(begins)


@pytest.mark.parametrize("name", ["a.gif", "a", "png"])
def test_another_suffix(tmp_path: Path, name: str) -> None:
    with pytest.raises(LabError, match=r"must end in \.png or \.svg"):
        curve.check_target(tmp_path / name)


def test_without_matplotlib(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(LabError, match="install it with"):
        curve.check_target(tmp_path / "a.png")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots are an extra")
    with pytest.raises(LabError, match="cannot be written"):
        curve.save(tmp_path / "nowhere" / "a.png", {"x": SAMPLES})
