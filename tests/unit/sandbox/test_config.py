"""isolation.toml, and the accounts of attempts."""

import os
from pathlib import Path

import pytest

from gpulab.attempts.sandbox import accounts, config
from gpulab.model import LabError


def write(folder: Path, text: str) -> Path:
    path = folder / "isolation.toml"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return path


def test_little_must_be_said(tmp_path: Path) -> None:
    read = config.read(write(tmp_path, 'python = "/opt/stack/bin/python"\n'))
    assert read.rootfs == "/"
    assert read.gpu is None
    assert read.uids.numbers == range(61_000, 61_064)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "`python` is missing"),
        ('python = "bin/python"', "absolute path"),
        ('python = "/a/../b"', "absolute path"),
        ('python = "/p"\nfolders = ["opt"]', "absolute path"),
        ('python = "/p"\nrootfs = "/no/such/folder"', "`rootfs`"),
        ('python = "/p"\ncgroup = "/sys/fs"', "`cgroup`"),
        ('python = "/p"\nmemory = 3', "unknown key `memory`"),
        ('python = "/p"\n[uids]\nfirst = 0', "`uids`"),
        ('python = "/p"\n[uids]\nfirst = 1\ncount = 70_000', "root|daemon|nobody|number"),
        ('python = "/p"\n[bounds]\nmemory_mib = 8', "bounds.memory_mib"),
        ('python = "/p"\n[bounds]\npids = 0', "bounds.pids"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(LabError, match=words):
        config.read(write(tmp_path, text))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root minds who may write the file")
def test_a_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, 'python = "/p"\n')
    path.chmod(0o666)
    with pytest.raises(LabError, match="root alone"):
        config.read(path)


def test_accounts_are_taken_once_and_given_back(tmp_path: Path) -> None:
    first = accounts.take(range(5, 7), tmp_path)
    second = accounts.take(range(5, 7), tmp_path)
    assert (first.number, second.number) == (5, 6)
    with pytest.raises(LabError, match=r"uids\.count"):
        accounts.take(range(5, 7), tmp_path)
    copy = os.dup(first.lock)
    os.close(first.lock)
    with pytest.raises(LabError, match="taken"):  # a sandbox holds a copy
        accounts.take(range(5, 7), tmp_path)
    os.close(copy)
    again = accounts.take(range(5, 7), tmp_path)
    assert again.number == 5
    os.close(again.lock)
    os.close(second.lock)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LabError, match="cannot be locked"):
        accounts.take(range(5, 7), tmp_path / "file" / "locks")
