"""Memory: exact within a budget, estimated in between, and a series that stays small."""

import os

import pytest

from gpulab.observe import MemorySample, memory
from gpulab.observe.memory import LONGEST, MemorySeries
from gpulab.observe.proc import read_stat
from gpulab.observe.tree import Member

MIB = 1 << 20


def test_a_long_series_keeps_its_peaks_and_its_order():
    series = MemorySeries()
    peak = MemorySample(7.25, private=900, resident=1000, gpu=77)
    for step in range(10 * LONGEST):
        series.add(peak if step == 7250 else MemorySample(step / 1000, 1, 2, None))
    samples = series.samples
    assert len(samples) <= LONGEST
    assert (max(s.private for s in samples), max(s.resident for s in samples)) == (900, 1000)
    assert [s.gpu for s in samples if s.gpu is not None] == [77]
    assert [s.at for s in samples] == sorted(s.at for s in samples)
    assert series.latest == samples[-1]
    assert samples[-1].at == pytest.approx(10 * LONGEST / 1000, abs=0.01)


def test_a_short_peak_is_seen(watcher):
    (seen,) = watcher.watch("memory_user.py peak")
    private = max(sample.private for sample in seen.evidence.memory)
    assert 300 * MIB < private < 400 * MIB
    assert seen.evidence.processes[0].peak_private == private


def test_pages_shared_with_a_forked_child_are_nobodys_private_memory(watcher):
    watched = watcher.start("memory_user.py", "fork")
    watched.look_until("READY")
    watched.look_for(2)
    _, child = watched.evidence.processes
    assert child.peak_private < 50 * MIB
    assert watched.observer.latest.private < 150 * MIB
    assert watched.observer.latest.resident > 600 * MIB


def test_pages_of_a_file_are_nobodys_private_memory(watcher, tmp_path):
    file = tmp_path / "file"
    file.write_bytes(bytes(300 * MIB))
    with file.open("rb") as written:
        os.fsync(written)  # until then the kernel calls its pages dirty
    watched = watcher.start("memory_user.py", "file", str(file))
    watched.look_until("READY")
    watched.look_for(1)
    assert watched.observer.latest.resident > 300 * MIB
    assert watched.observer.latest.private < 50 * MIB


def test_without_the_right_to_exact_figures_the_estimate_is_named(watcher, monkeypatch):
    monkeypatch.setattr(memory, "private_memory_of", lambda _: memory.Denied())
    (seen,) = watcher.watch("memory_user.py peak")
    assert "private memory: estimated, no right to read it exactly" in seen.evidence.missing
    assert max(sample.private for sample in seen.evidence.memory) > 300 * MIB


def test_what_grows_while_it_is_read_is_counted_once(monkeypatch):
    """A reading takes milliseconds, on a busy machine many."""
    grown = []

    def slow_reading(_: int) -> int:
        grown.append(100 * MIB)  # meanwhile the process grew, and the reading knows
        return 10 * MIB + sum(grown)

    def pages(_: int) -> tuple[int, int]:
        return 20 * MIB + sum(grown), 500 * MIB

    monkeypatch.setattr(memory, "private_memory_of", slow_reading)
    monkeypatch.setattr(memory, "pages_of", pages)
    tree, ours = memory.TreeMemory(), os.getpid()
    worker = Member(read_stat(f"/proc/{ours}"), parent=0, command=(), started=0.0, role="worker")
    assert tree.sample(0.0, [worker])[0] == 110 * MIB
    assert tree.sample(0.0, [worker])[2] == 110 * MIB
    assert worker.peak_private == 110 * MIB
