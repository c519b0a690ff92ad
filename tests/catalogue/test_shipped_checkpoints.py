"""The two checkpoint files that come with exercises, read as what they are: zip archives.

`from-gpu.pt` was made without a GPU: while it was saved, every tensor was noted to live on the
fourth one. That note is all that a GPU's file differs by. `pretrained.pt` comes from the CPU.
"""

import re
import zipfile
from pathlib import Path

import pytest

EXERCISES = Path(__file__).parents[2] / "exercises"


def pickled(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
        return archive.read(name)


@pytest.mark.parametrize(
    ("file", "device"),
    [("exercise-3/from-gpu.pt", b"cuda:3"), ("exercise-1/pretrained.pt", b"cpu")],
)
def test_every_tensor_is_noted_on_the_device(file: str, device: bytes) -> None:
    assert set(re.findall(rb"cuda:\d+|cpu", pickled(EXERCISES / file))) == {device}


def test_a_wrapper_wrote_the_file_from_the_gpu() -> None:
    text = pickled(EXERCISES / "exercise-3/from-gpu.pt")
    names = set(re.findall(rb"[\w.]+\.(?:weight|bias)", text))
    assert len(names) == 9
    assert all(name.startswith(b"module.") for name in names)
    assert b"module.blocks.0.module.0.weight" in names


def test_the_pretrained_file_holds_no_constant() -> None:
    text = pickled(EXERCISES / "exercise-1/pretrained.pt")
    names = set(re.findall(rb"[\w.]+\.(?:weight|bias)", text))
    assert names == {b"hidden.weight", b"hidden.bias", b"scores.weight", b"scores.bias"}
    assert b"centre" not in text
