"""TOML is read strictly: every mistake names the file, the key and the remedy."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab import tables
from gpulab.model import LabError


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Inner:
    about: str
    colours: tuple[Colour, ...] = ()


@dataclass(frozen=True)
class Outer:
    name: str
    level: int
    seconds: float = 1.0
    shown: bool = True
    limit: int | None = None
    parts: dict[str, Inner] = field(default_factory=dict)


@pytest.fixture
def read(tmp_path: Path):
    def read_text(text: str, kind: type = Outer):
        path = tmp_path / "facts.toml"
        path.write_text(text, encoding="utf-8")
        return tables.read(path, kind)

    return read_text


def refusal(read, text: str) -> str:
    with pytest.raises(LabError) as refused:
        read(text)
    message = str(refused.value)
    assert "facts.toml" in message
    assert "\n" not in message
    return message


def test_everything_that_fits(read) -> None:
    text = (
        'name = "a"\nlevel = 2\nseconds = 3\nlimit = 5\n[parts.x]\nabout = "b"\ncolours = ["red"]'
    )
    assert read(text) == Outer("a", 2, 3.0, limit=5, parts={"x": Inner("b", (Colour.RED,))})


def test_defaults(read) -> None:
    assert read('name = "a"\nlevel = 2') == Outer("a", 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('name = "a"\nlevle = 2', "unknown key `levle` (did you mean `level`?)"),
        ('name = "a"\nlevel = 1\nzzzz = 2', "unknown key `zzzz`; remove it"),
        ('name = "a"', "`level` is missing"),
        ("name = 3\nlevel = 1", "`name` must be text, not 3"),
        ('name = "a"\nlevel = "1"', "`level` must be a whole number"),
        ('name = "a"\nlevel = 1.5', "`level` must be a whole number"),
        ('name = "a"\nlevel = true', "`level` must be a whole number"),
        ('name = "a"\nlevel = 1\nshown = 1', "`shown` must be true or false"),
        ('name = "a"\nlevel = 1\nseconds = "x"', "`seconds` must be a number"),
        ('name = "a"\nlevel = 1\nlimit = "x"', "`limit` must be a whole number"),
        ('name = "a"\nlevel = 1\nparts = 3', "`parts` must be a table"),
        ('name = "a"\nlevel = 1\nparts.x = 3', "`parts`.x must be a table"),
        ('name = "a"\nlevel = 1\n[parts.x]', "`about` is missing"),
        ('name = "a"\nlevel = 1\n[parts.x]\nabout = "b"\ncolours = "red"', "must be a list"),
        (
            'name = "a"\nlevel = 1\n[parts.x]\nabout = "b"\ncolours = ["green"]',
            "must be one of red, blue, not 'green'",
        ),
        ('name = "a', "cannot be read"),
        ('name = "a"\nname = "b"', "cannot be read"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(read, text: str, said: str) -> None:
    assert said in refusal(read, text)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"facts\.toml is missing"):
        tables.read(tmp_path / "facts.toml", Outer)


def test_a_folder_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    for path in (tmp_path, tmp_path / "bytes.toml"):
        with pytest.raises(LabError, match="cannot be read"):
            tables.read(path, Outer)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.sampled_from(["name", "level", "seconds", "parts", "x"]), values))
def test_any_table_is_read_or_refused_in_one_sentence(table: dict) -> None:
    try:
        found = tables.from_table(table, Outer, "facts.toml")
    except LabError as refused:
        assert str(refused).startswith("facts.toml")  # noqa: PT017 - some tables do fit
    else:
        assert found.name == table["name"]
        assert type(found.level) is int
