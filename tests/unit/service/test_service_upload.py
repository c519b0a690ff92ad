"""What a client sends, read strictly."""

import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.service import upload
from gpulab.service.upload import UploadError


def unpack(data: bytes, target: Path) -> upload.Head:
    return upload.unpack(io.BytesIO(data), target)


def head(**changes: Any) -> bytes:
    said = {"exercise": "4", "device": None, "files": [["train.py", 3]], **changes}
    return json.dumps(said).encode() + b"\nabc"


def test_what_is_packed_comes_out(tmp_path: Path) -> None:
    files = [("train.py", b"print(1)\n"), ("sub/ünicode \udcff", b"\0" * 100_000), ("empty", b"")]
    found = unpack(upload.pack("exercise-4", "cpu", files), tmp_path / "work")
    assert (found.exercise, found.device) == ("exercise-4", "cpu")
    for name, data in files:
        assert (tmp_path / "work" / name).read_bytes() == data
    made = [path for path in (tmp_path / "work").rglob("*") if path.is_file()]
    assert len(made) == len(files)


@pytest.mark.parametrize(
    "name",
    [
        *("", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/.", "..", "a\0b", "a/"),
        *("x" * 256, "/".join("a" * 21), "\ud800"),
    ],
)
def test_names_that_lead_elsewhere(name: str, tmp_path: Path) -> None:
    with pytest.raises(UploadError):
        unpack(head(files=[[name, 3]]), tmp_path / "work")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "files",
    [
        [["a", 1], ["a", 2]],
        [["a", 1], ["a/b", 2]],
        [["a/b", 1], ["a", 2]],
        [["a", -1]],
        [["a", True]],
        [["a", 1.0]],
        [["a", "3"]],
        [["a"]],
        [["a", 1, 2]],
        [[3, 3]],
        ["a"],
        {"a": 3},
        None,
        [["a", 65 << 20]],
        [["a", 60 << 20], ["b", 5 << 20]],
        [[f"f{n}", 0] for n in range(2001)],
        [[f"{n}/a/b/c/d/e/f", 0] for n in range(300)],
    ],
)
def test_files_that_are_refused(files: Any, tmp_path: Path) -> None:
    with pytest.raises(UploadError):
        unpack(head(files=files), tmp_path / "work")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"nonsense\n",
        b"[]\n",
        b"{}\n",
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        b'{"exercise": "4"}\n',
        head(exercise=4),
        head(device=4),
        head(more=1),
        head()[:-1],
        head() + b"d",
        head(exercise="x" * (2 << 20)),
        b'{"exercise": "4", "device": null, "files": [["a", ' + b"9" * 5000 + b"]]}\n",
    ],
    ids=range(15),
)
def test_requests_that_are_refused(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(UploadError):
        unpack(data, tmp_path / "work")


def test_a_link_in_the_way_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with pytest.raises(FileExistsError):
        unpack(head(), tmp_path / "work")


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: head(files=[[text, 3]])))
def test_whatever_comes_stays_inside(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.suppress(UploadError):
            unpack(data, Path(folder) / "work")
        assert os.listdir(folder) in ([], ["work"])  # noqa: PTH208 - names only
