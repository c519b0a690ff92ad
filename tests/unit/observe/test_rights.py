"""Observers without rights or without py-spy: what is missing is named, nothing is made up."""

import json
import os
import stat
from pathlib import Path

import pytest

from gpulab.observe import Frame, Observer, proc, stacks
from gpulab.observe.proc import can_be_woken_by_signal, read_stat
from gpulab.observe.stacks import StacksUnavailableError, take_stacks

NOBODY = 65534


def program(folder, text):
    path = folder / "py-spy"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo 'Error: Permission denied' >&2; exit 1", "Permission denied"),
        ("exit 3", "no reason given"),
        ("exec sleep 30", "took over 0.3 s"),
        (None, "not installed"),
    ],
)
def test_a_hang_is_reported_without_stacks_too(watcher, monkeypatch, tmp_path, text, words):
    spy = program(tmp_path, text) if text else None
    monkeypatch.setattr(stacks, "_py_spy", lambda: spy)
    monkeypatch.setattr(stacks, "TIME_LIMIT", 0.3)
    (seen,) = watcher.watch("two_locks.py")
    assert seen.hang.kind == "proof"
    (process,) = seen.hang.waiting
    assert process.threads == ()
    assert process.waits_for == "a lock that only its own process can release"
    (missing,) = seen.evidence.missing
    assert missing.startswith("Python stacks: ")
    assert words in missing


def test_own_frames_come_first_and_the_main_thread(monkeypatch, tmp_path):
    own = tmp_path / "work" / "train.py"
    own.parent.mkdir()
    own.write_text("first\n  second  \n")

    def call(file, line):
        return {"name": "f", "filename": str(file), "line": line}

    threads = [
        {"thread_name": None, "os_thread_id": 8, "frames": []},
        {
            "thread_name": "MainThread",
            "os_thread_id": 7,
            "frames": [call("/lib/queue.py", 3), call(own, 2), call("/lib/x.py", 1), call(own, 1)],
        },
    ]
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps(threads))
    monkeypatch.setattr(stacks, "_py_spy", lambda: program(tmp_path, f"cat {answer}"))
    main, other = take_stacks(7, own.parent)
    assert (main.name, other.name) == ("MainThread", "")
    assert [(Path(f.file).name, f.line, f.source) for f in main.frames] == [
        ("train.py", 2, "second"),
        ("train.py", 1, "first"),
        ("queue.py", 3, None),
        ("x.py", 1, None),
    ]


def test_no_line_of_a_file_outside_the_folder_is_read(monkeypatch, tmp_path):
    secret = tmp_path / "test_fix.py"
    secret.write_text("the hidden check\n")
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "link.py").symlink_to(secret)
    claimed = [secret, folder / "link.py", folder / ".." / "test_fix.py"]
    frames = [{"name": "f", "filename": str(file), "line": 1} for file in claimed]
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps([{"thread_name": "t", "os_thread_id": 7, "frames": frames}]))
    monkeypatch.setattr(stacks, "_py_spy", lambda: program(tmp_path, f"cat {answer}"))
    (thread,) = take_stacks(7, folder)
    assert [frame.source for frame in thread.frames] == [None, None, None]


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "outside", "short", "absent", "loop"])
def test_source_is_read_from_regular_files_of_the_work_folder_alone(tmp_path, kind):
    folder, secret = tmp_path / "work", tmp_path / "secret.py"
    folder.mkdir()
    secret.write_text("hidden\n")
    file = folder / "train.py"
    if kind == "link":
        file.symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "loop":
        file.symlink_to(file)
    elif kind == "folder":
        file.mkdir()
    elif kind == "outside":
        file = secret
    elif kind == "short":
        file.touch()
    call = {"name": "f", "filename": str(file), "line": 1}
    name = str(file) if kind in ("link", "outside", "loop") else "train.py"
    assert stacks._frames([call], folder) == (Frame(name, 1, "f", None),)
    assert stacks._source(file, 1, folder) is None


def test_a_file_name_that_cannot_be_one_is_shown_as_it_is(tmp_path):
    call = {"name": "f", "filename": "a\0b", "line": 1}
    assert stacks._frames([call], tmp_path) == (Frame("a\0b", 1, "f", None),)


def test_a_file_name_without_a_folder_is_the_work_folders(tmp_path):
    (tmp_path / "train.py").write_text("first\nsecond\n")
    call = {"name": "f", "filename": "train.py", "line": 2}
    assert stacks._frames([call], tmp_path) == (Frame("train.py", 2, "f", "second"),)


def test_no_time_left_is_said(tmp_path):
    with pytest.raises(StacksUnavailableError, match="no time was left"):
        take_stacks(os.getpid(), tmp_path, time_limit=0)


def test_a_process_that_is_gone_has_no_stacks(tmp_path):
    with pytest.raises(StacksUnavailableError, match="py-spy failed"):
        take_stacks(2**22 + 1, tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another account to be without rights")
def test_another_accounts_process_is_watched_as_far_as_rights_go(watcher):
    watched = watcher.start("sleeper.py", "time")
    watched.look_until("START")
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            observer = Observer(watched.process.pid, Path("/"))
            observer.look(0)
            evidence = observer.evidence()
            told = {
                "missing": evidence.missing,
                "private": evidence.memory[0].private,
                "alive": len(observer.live()),
            }
            os.write(writer, json.dumps(told).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        told = json.load(pipe)
    os.wait()
    assert told["alive"] == 1
    assert told["private"] > 0
    assert [note.partition(":")[0] for note in told["missing"]] == [
        "bytes read and written",
        "hangs",
        "private memory",
    ]


def test_a_process_name_may_hold_anything(monkeypatch):
    fields = "S 5 6 6 0 -1 4194304 70 0 0 0 100 50 25 25 20 0 3 0 4321 0 0"
    monkeypatch.setattr(proc, "read", lambda _: f"42 (a) S 1 (b)) {fields}\n")
    seen = read_stat("/proc/42")
    assert (seen.pid, seen.name, seen.state, seen.parent) == (42, "a) S 1 (b)", "S", 5)
    assert (seen.session, seen.faults, seen.threads, seen.started) == (6, 70, 3, 4321)
    assert seen.cpu == pytest.approx(150 / proc.TICKS_PER_SECOND)
    assert seen.waited_cpu == pytest.approx(50 / proc.TICKS_PER_SECOND)


@pytest.mark.parametrize(
    ("caught", "expected"),
    [
        ("2", False),
        ("10000", False),
        ("2000", True),
        ("200", True),
        ("200000000", True),
        ("0", False),
    ],
)
def test_signals_that_may_wake(monkeypatch, caught, expected):
    monkeypatch.setattr(proc, "read", lambda _: f"Name:\tx\nSigCgt:\t{caught:0>16}\n")
    assert can_be_woken_by_signal(1) is expected


@pytest.mark.parametrize("state", "ZX")
def test_a_zombie_whose_threads_still_run_is_alive(state):
    seen = read_stat(f"/proc/{os.getpid()}")
    dead = proc.Stat(**{**vars(seen), "state": state, "threads": 1})
    assert not dead.alive
    assert proc.Stat(**{**vars(seen), "state": state, "threads": 2}).alive


def test_children_are_found_without_the_kernels_list(watcher, monkeypatch):
    monkeypatch.setattr(proc, "_kernel_lists_children", lambda: False)
    watched = watcher.start("family.py", "family")
    watched.look_until("READY")
    watched.look_for(0.3)
    assert len(watched.observer.live()) == 10
