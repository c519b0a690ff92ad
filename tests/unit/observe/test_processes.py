"""Who belongs to an attempt, in what role, and that nothing of it outlives its end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpulab.observe import Observer, end_everything, keep_apart, tree


def alive(pid):
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def printed_ids(watched):
    return {int(word) for word in watched.output.split() if word.isdigit()}


@pytest.mark.parametrize("looks", [True, False])
@pytest.mark.parametrize("kind", ["family", "orphan", "daemon", "deaf", "program", "respawn"])
def test_nothing_outlives_the_end(watcher, kind, looks):
    watched = watcher.start("family.py", kind)
    if looks and kind != "deaf":  # its main process waits for the shell
        watched.look_until("READY")
        watched.look_for(0.3)
    else:
        time.sleep(1)
    living = watched.observer.live()
    assert watched.process.pid in living
    assert kind == "respawn" or len(living) >= 2
    assert printed_ids(watched) <= living
    end_everything(watched.observer)
    assert watched.observer.live() == set()
    watched.process.wait(5)
    time.sleep(0.2)
    assert watched.observer.live() == set()
    assert not any(alive(pid) for pid in living | printed_ids(watched))


def test_an_orphan_is_remembered_when_the_root_has_ended(watcher):
    watched = watcher.start("family.py", "daemon")
    watched.look_until("READY")
    while not printed_ids(watched):
        watched.look_for(0.1)
    (orphan,) = printed_ids(watched)
    watched.process.send_signal(signal.SIGKILL)
    watched.process.wait(5)
    watched.look_for(0.3)
    assert watched.observer.live() == {orphan}
    end_everything(watched.observer)
    assert not alive(orphan)


def test_processes_of_others_are_spared(watcher):
    sleep = [sys.executable, "-c", "import time; time.sleep(30)"]
    before = subprocess.Popen(sleep, start_new_session=True)
    watched = watcher.start("family.py", "family")
    other = watcher.start("family.py", "program")
    same_session = subprocess.Popen(sleep)
    named = subprocess.Popen(sleep, start_new_session=True)
    keep_apart(named.pid)
    try:
        for each in (watched, other):
            each.look_until("READY")
        end_everything(watched.observer)
        assert [p.poll() for p in (before, same_session, named)] == [None] * 3
        assert other.process.poll() is None
        assert len(other.observer.live()) == 2
    finally:
        for process in (before, same_session, named):
            process.kill()
            process.wait()


def test_a_process_with_the_number_of_the_root_but_another_start_is_not_the_root(watcher):
    watched = watcher.start("family.py", "family")
    watched.observer._tree._born -= 1
    watched.look()
    assert watched.observer.live() == set()
    watched.observer._tree._born += 1


def test_a_root_that_is_gone_already_is_an_empty_tree(tmp_path):
    process = subprocess.Popen(["true"])
    process.wait()
    observer = Observer(process.pid, tmp_path)
    observer.look(0)
    end_everything(observer)
    assert observer.live() == set()
    assert observer.evidence().processes == ()


def test_a_process_without_its_main_thread_lives(watcher):
    watched = watcher.start("family.py", "headless")
    while not printed_ids(watched):
        watched.look_for(0.1)
    watched.look_for(0.3)
    assert Path(f"/proc/{watched.process.pid}/stat").read_text().split()[2] == "Z"
    assert watched.observer.live() == {watched.process.pid}
    end_everything(watched.observer)
    watched.process.wait(5)


def roles(watched):
    return sorted(record.role for record in watched.evidence.processes)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("family", ["main"] + ["worker"] * 9),
        ("named", ["main", "other", "worker"]),
        ("starter", ["helper", "main", "other", "worker"]),
        ("program", ["main", "other"]),
        ("sandbox", ["helper", "main"] + ["worker"] * 9),
        ("spawn spawn", ["helper", "main", "worker"]),
        ("spawn forkserver", ["helper", "helper", "main", "worker"]),
    ],
)
def test_roles(watcher, arguments, expected):
    watched = watcher.start("family.py", *arguments.split())
    watched.look_until("READY")
    watched.look_for(0.5)
    while len(watched.evidence.processes) < len(expected) or not printed_ids(watched):
        if arguments == "program":
            break
        watched.look_for(0.1)
    watched.look_for(0.3)
    assert roles(watched) == expected
    end_everything(watched.observer)
    assert roles(watched) == expected, "a role survives the end of the parent"


def test_what_the_records_say(watcher):
    watched = watcher.start("family.py", "family")
    watched.look_until("READY")
    watched.look_for(1.0)
    end_everything(watched.observer)
    watched.look()
    evidence = watched.evidence
    main, *workers = evidence.processes
    assert main.pid == watched.process.pid
    assert main.parent == os.getpid()
    assert main.command[0] == sys.executable
    assert main.command[-1] == "family"
    assert main.read > 10_000  # at least the modules that Python reads
    for record in evidence.processes:
        assert 0 <= record.started < record.ended <= evidence.wall + 1
        assert record.peak_private > 0
    assert {record.parent for record in workers} == {main.pid}
    assert 0 < main.cpu <= evidence.cpu < evidence.wall * os.cpu_count()
    assert max(sample.private for sample in evidence.memory) > 1 << 20
    assert all(sample.private <= sample.resident for sample in evidence.memory)


def test_cpu_counts_children_that_lived_between_two_looks(watcher):
    watched = watcher.start("burner.py")
    watched.look()
    deadline = time.monotonic() + 20
    while "DONE" not in watched.output:  # no look meanwhile
        assert time.monotonic() < deadline
        time.sleep(0.05)
    watched.look()
    assert watched.evidence.cpu >= 0.5


def test_very_many_processes_cost_neither_memory_nor_time(watcher, monkeypatch):
    monkeypatch.setattr(tree, "RECORDS_AT_MOST", 20)
    watched = watcher.start("family.py", "storm")
    watched.look_until("READY")
    assert watched.evidence.cpu > 0
    assert len(watched.evidence.processes) == 20
    assert any("are not listed" in note for note in watched.evidence.missing)
    assert len(watched.observer._tree._latest) < 25
    end_everything(watched.observer)
    assert watched.observer.live() == set()


def test_a_look_is_cheap(watcher):
    watched = watcher.start("family.py", "family")
    watched.look_until("READY")
    del watched.looks[:]
    watched.look_for(2.0)
    mean = sum(watched.looks) / len(watched.looks)
    assert len(watched.observer.live()) == 10
    assert mean < 0.02, "of the 50 ms between two looks"
