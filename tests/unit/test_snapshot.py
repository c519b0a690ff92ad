"""A snapshot holds the folder's own regular files, whatever an attendee puts there."""

import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from gpulab import snapshot
from gpulab.model import LabError
from gpulab.snapshot import take_snapshot


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "data").mkdir(parents=True)
    (folder / "train.py").write_text("x = 1\n")
    (folder / "data" / "a.txt").write_text("a")
    return folder


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "scratch" / "copy"


def refusal(source: Path, target: Path, code: int = 1) -> str:
    before = open_descriptors()
    with pytest.raises(LabError) as refused:
        take_snapshot(source, target)
    assert refused.value.code == code
    assert open_descriptors() == before
    return str(refused.value)


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_the_files_and_nothing_else(source: Path, target: Path) -> None:
    for name in snapshot.SKIPPED:
        (source / name).mkdir()
        (source / name / "x").write_text("x")
    taken = take_snapshot(source, target)
    found = {p.relative_to(target) for p in target.rglob("*") if p.is_file()}
    assert found == {Path("train.py"), Path("data/a.txt")}
    assert (taken.folder / "train.py").read_text() == "x = 1\n"


def test_the_hash_names_the_content(source: Path, tmp_path: Path) -> None:
    def taken(name: str) -> str:
        return take_snapshot(source, tmp_path / name).sha256

    first = taken("a")
    assert taken("b") == first
    (source / "train.py").write_text("x = 2\n")
    assert taken("c") != first
    (source / "train.py").write_text("x = 1\n")
    (source / "data" / "a.txt").rename(source / "data" / "b.txt")
    assert taken("d") != first


@pytest.mark.parametrize("to", ["train.py", "data", "/etc/passwd", "/etc", "nowhere", "loop"])
def test_a_link_is_refused(source: Path, target: Path, to: str) -> None:
    (source / "loop").symlink_to(to)
    said = refusal(source, target)
    assert f"{source / 'loop'} is a link; put the file itself there." in said


def test_a_link_in_a_sub_folder(source: Path, target: Path) -> None:
    (source / "data" / "link").symlink_to("/etc/passwd")
    assert "data/link is a link" in refusal(source, target)


def test_the_folder_itself_is_a_link(tmp_path: Path, source: Path, target: Path) -> None:
    (tmp_path / "link").symlink_to(source)
    assert "is a link; put the folder itself there" in refusal(tmp_path / "link", target)


def test_a_folder_that_becomes_a_link_leads_nowhere(
    source: Path, target: Path, tmp_path: Path, monkeypatch
) -> None:
    """Between the look at a folder and its opening, it is exchanged for a link outwards."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    look = snapshot._flags

    def exchange(path: Path, mode: int) -> int:
        flags = look(path, mode)
        if path.name == "data":
            path.rename(tmp_path / "moved")
            path.symlink_to(outside)
        return flags

    monkeypatch.setattr(snapshot, "_flags", exchange)
    refusal(source, target)
    assert not (target / "data" / "secret").exists()


def test_special_files(source: Path, target: Path) -> None:
    os.mkfifo(source / "pipe")
    assert "pipe is no ordinary file; move it away" in refusal(source, target)


def test_a_socket(source: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(source)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        assert "s is no ordinary file" in refusal(source, tmp_path / "copy")


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes device nodes")
def test_a_device(source: Path, target: Path) -> None:
    try:
        os.mknod(source / "zero", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("this root may not make device nodes")
    assert "zero is no ordinary file" in refusal(source, target)


def test_a_sparse_file_of_ten_gigabytes(source: Path, target: Path) -> None:
    with (source / "model.pt").open("wb") as file:
        file.truncate(10 << 30)
    assert "model.pt makes the work folder larger than 64 MiB" in refusal(source, target)


def test_many_small_files_are_too_large_together(source: Path, target: Path, monkeypatch) -> None:
    monkeypatch.setattr(snapshot, "MAX_BYTES", 10)
    (source / "data" / "b.txt").write_text("12345")
    assert "makes the work folder larger" in refusal(source, target)


@pytest.mark.parametrize("kind", ["touch", "mkdir"])
def test_too_many_files_or_folders(source: Path, target: Path, monkeypatch, kind: str) -> None:
    monkeypatch.setattr(snapshot, "MAX_ENTRIES", 20)
    for number in range(25):
        getattr(source / f"f{number}", kind)()
    assert "more than 20 files and folders; move some" in refusal(source, target)


def test_folders_without_end(source: Path, target: Path) -> None:
    (source / Path(*["deep"] * 200)).mkdir(parents=True)
    assert "more than 20 folders deep" in refusal(source, target)


def test_names_that_are_no_text(source: Path, target: Path) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    (source / name).write_text("x")
    assert (take_snapshot(source, target).folder / name).read_text() == "x"


def test_an_unreadable_file(source: Path, target: Path, monkeypatch) -> None:
    def open_denied(path, flags, **place):
        if path == "train.py":
            raise PermissionError(13, "Permission denied", path)
        return real_open(path, flags, **place)

    real_open = os.open
    monkeypatch.setattr(os, "open", open_denied)  # root may read all: chmod would show nothing
    assert refusal(source, target) == (
        f"{source / 'train.py'}: Permission denied; mend that and try again."
    )


def test_a_file_that_grows(source: Path, target: Path, monkeypatch) -> None:
    monkeypatch.setattr(snapshot, "MAX_BYTES", 1000)
    real = os.fstat

    def fstat_then_grow(fd: int):
        status = real(fd)
        with (source / "train.py").open("ab") as file:
            file.write(bytes(2000))
        return status

    (source / "data" / "a.txt").unlink()
    monkeypatch.setattr(os, "fstat", fstat_then_grow)
    said = refusal(source, target)
    assert "train.py" in said
    assert "grows while it is read" in said or "larger than" in said


def test_a_file_that_is_written_without_pause(source: Path, tmp_path: Path) -> None:
    """Never a crash: a copy, or a sentence."""
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            (source / "train.py").write_bytes(os.urandom(1000))
            (source / "other").write_text("x")
            (source / "other").unlink()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(50):
            try:
                taken = take_snapshot(source, tmp_path / f"copy-{number}")
            except LabError as refused:
                assert str(source) in str(refused)  # noqa: PT017 - most copies succeed
            else:
                assert len((taken.folder / "train.py").read_bytes()) <= 1000
    finally:
        stop.set()
        writer.join()


def test_a_missing_folder(tmp_path: Path, target: Path) -> None:
    said = refusal(tmp_path / "gone", target)
    assert said == f"{tmp_path / 'gone'}: No such file or directory; mend that and try again."


def test_a_full_disk_is_the_labs_trouble(source: Path, tmp_path: Path, disks) -> None:
    (source / "big.bin").write_bytes(os.urandom(200_000))
    if disks.full(tmp_path / "small"):
        pytest.skip("no right to mount a small disk; the commands' tests limit the file size")
    assert "No space left on device" in refusal(source, tmp_path / "small" / "copy", code=4)
