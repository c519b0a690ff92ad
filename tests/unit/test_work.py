"""An attendee's files: laid out whole, archived before a reset, packed without loss."""

import json
import os
import re
import tarfile
import threading
from pathlib import Path

import pytest

from gpulab.catalogue import Catalogue, Exercise
from gpulab.model import LabError
from gpulab.work import Work


@pytest.fixture
def exercise(golden: Path) -> Exercise:
    return Catalogue(golden).find("1")


@pytest.fixture
def work(golden: Path, monkeypatch) -> Work:
    monkeypatch.delenv("GPULAB_WORK", raising=False)
    return Work(golden)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_where_it_is(golden: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("GPULAB_WORK", raising=False)
    assert Work(golden).home == golden / "work"
    monkeypatch.setenv("GPULAB_WORK", str(tmp_path / "x" / ".." / "elsewhere"))
    assert Work(golden).home == tmp_path / "elsewhere"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GPULAB_WORK", "~/mine")
    assert Work(golden).home == tmp_path / "mine"


def test_the_folder_is_made_once(work: Work, exercise: Exercise) -> None:
    folder = work.folder(exercise)
    assert names(folder) == ["README.md", "train.py"]
    (folder / "train.py").write_text("mine")
    assert (work.folder(exercise) / "train.py").read_text() == "mine"
    assert names(work.home) == ["exercise-1"]


def test_two_commands_lay_it_out_at_once(work: Work, exercise: Exercise) -> None:
    threads = [threading.Thread(target=work.folder, args=(exercise,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names(work.home) == ["exercise-1"]
    assert names(work.home / "exercise-1") == ["README.md", "train.py"]


@pytest.mark.parametrize("kind", ["file", "dangling link", "link"])
def test_something_else_in_its_place(work: Work, exercise: Exercise, kind: str) -> None:
    work.home.mkdir()
    place = work.home / "exercise-1"
    if kind == "file":
        place.write_text("mine")
    else:
        place.symlink_to("nowhere" if kind == "dangling link" else "/etc")
    with pytest.raises(LabError, match="is no folder; move it away"):
        work.folder(exercise)
    archived = work.reset(exercise)
    assert archived is not None
    assert os.path.lexists(archived)
    assert names(place) == ["README.md", "train.py"]


def test_reset_archives_first(work: Work, exercise: Exercise) -> None:
    assert work.reset(exercise) is None
    (work.folder(exercise) / "train.py").write_text("mine")
    archived = work.reset(exercise)
    assert (archived / "train.py").read_text() == "mine"
    assert (work.folder(exercise) / "train.py").read_text() != "mine"


def test_resets_in_one_second(work: Work, exercise: Exercise) -> None:
    found = []
    for number in range(5):
        (work.folder(exercise) / "train.py").write_text(str(number))
        found.append(work.reset(exercise))
    assert [(path / "train.py").read_text() for path in found] == list("01234")


def test_a_reset_that_fails_changes_nothing(work: Work, exercise: Exercise, monkeypatch) -> None:
    (work.folder(exercise) / "train.py").write_text("mine")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device", "train.py")

    monkeypatch.setattr("gpulab.work.lay_out", fail)
    with pytest.raises(LabError, match="No space left on device"):
        work.reset(exercise)
    assert (work.home / "exercise-1" / "train.py").read_text() == "mine"
    assert names(work.home / "archive") == []


def test_a_read_only_folder(work: Work, exercise: Exercise, disks) -> None:
    (work.folder(exercise) / "train.py").write_text("mine")
    disks.read_only(work.home)
    with pytest.raises(LabError, match="mend that and try again"):
        work.reset(exercise)
    assert (work.home / "exercise-1" / "train.py").read_text() == "mine"


def test_a_home_that_is_a_file(golden: Path, exercise: Exercise, monkeypatch) -> None:
    monkeypatch.setenv("GPULAB_WORK", str(golden / "tasks.py"))
    with pytest.raises(LabError, match="mend that and try again"):
        Work(golden).folder(exercise)


def test_pack_holds_everything(work: Work, exercise: Exercise, tmp_path: Path) -> None:
    folder = work.folder(exercise)
    work.reset(exercise)
    work.records.parent.mkdir()
    work.records.touch()
    for name in ("with space", "中文.py", "-rf", "new\nline", os.fsdecode(b"caf\xe9"), "..x"):
        (work.folder(exercise) / name).write_text(name, errors="surrogateescape")
    (folder / "link").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe")
    target = work.pack([{"verdict": "fixed", "said": "\ud800"}], tmp_path / "pack.tar.gz")
    with tarfile.open(target) as tar:
        packed = tar.getnames()
        verdicts = tar.extractfile("gpulab-work/verdicts.json")
        assert json.load(verdicts)[0]["verdict"] == "fixed"
        assert tar.getmember("gpulab-work/exercise-1/link").issym()
    inside = {name.removeprefix("gpulab-work/exercise-1/") for name in packed}
    assert {"with space", "中文.py", "-rf", "new\nline", os.fsdecode(b"caf\xe9"), "..x"} <= inside
    assert "pipe" not in inside
    assert any(name.endswith("/exercise-1/train.py") and "archive" in name for name in packed)
    assert not [name for name in packed if re.match(r"/|.*\.\./|.*records", name)]


def test_pack_never_overwrites(work: Work, exercise: Exercise, tmp_path: Path) -> None:
    work.folder(exercise)
    target = tmp_path / "pack.tar.gz"
    target.write_text("mine")
    (tmp_path / "pack.tar.gz.part").write_text("mine, too")
    with pytest.raises(LabError, match="exists already; name another file with --to"):
        work.pack([], target)
    (tmp_path / "dangling").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LabError, match="exists already"):
        work.pack([], tmp_path / "dangling")
    assert target.read_text() == "mine"
    assert (tmp_path / "pack.tar.gz.part").read_text() == "mine, too"


def test_pack_into_the_work_itself(work: Work, exercise: Exercise) -> None:
    work.folder(exercise)
    target = work.pack([], work.home / "exercise-1" / "pack.tar.gz")
    with tarfile.open(target) as tar:
        assert not [name for name in tar.getnames() if name.endswith("pack.tar.gz")]


@pytest.mark.parametrize("where", ["nowhere/pack.tar.gz", "golden"])
def test_pack_where_nothing_can_be_written(
    work: Work, exercise: Exercise, tmp_path: Path, where: str
) -> None:
    work.folder(exercise)
    with pytest.raises(LabError):
        work.pack([], tmp_path / where)


def test_pack_on_a_full_disk_leaves_no_half(
    work: Work, exercise: Exercise, tmp_path: Path, disks
) -> None:
    (work.folder(exercise) / "noise").write_bytes(os.urandom(300_000))
    if disks.full(tmp_path / "small"):
        pytest.skip("no right to mount a small disk; the commands' tests limit the file size")
    with pytest.raises(LabError, match="No space left on device"):
        work.pack([], tmp_path / "small" / "pack.tar.gz")
    assert names(tmp_path / "small") == ["ballast"]


def test_nothing_to_pack(work: Work, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="There is no work in"):
        work.pack([], tmp_path / "pack.tar.gz")
