"""Hidden checks of exercise 18."""

import json
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpulab.evidence import Attempt, Lab, fail, note, require_answer, require_finished

EPOCHS, CLASSES, SAMPLES = 2, 4, 2048
COUNTS = range(64, 97)
REALLY_READ = 0.5  # of all records: a worker's last look may come before its last read
RIGHT = 0.8  # of unseen signals; a model that learnt nothing is right about one in four


@dataclass(frozen=True)
class Run:
    """Records that nobody has seen before, and the attempt to train on them."""

    sizes: dict[str, int]  # bytes by record id
    classes: np.ndarray  # of the unseen signals
    attempt: Attempt

    @cached_property
    def audit(self) -> list[list[list[Any]]]:
        """For every epoch, [record id, process] of each sample."""
        audit = require_answer(self.attempt)["audit"]
        if not isinstance(audit, list) or not all(map(is_epoch, audit)):
            fail("audit_malformed")
        if len(audit) != EPOCHS:
            fail("epochs_wrong", count=len(audit), expected=EPOCHS)
        return audit


def is_epoch(epoch: Any) -> bool:
    """Whether it is a list of pairs, a record id and a process number."""
    return isinstance(epoch, list) and all(
        isinstance(sample, list)
        and len(sample) == 2
        and isinstance(sample[0], str)
        and type(sample[1]) is int
        for sample in epoch
    )


def draw(rng: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    """One noisy sine (SAMPLES,) for each label; the label gives its frequency."""
    clock = np.linspace(0, 1, SAMPLES)
    waves = np.sin(2 * np.pi * (40 + 50 * labels[:, None]) * clock)
    return (waves + rng.normal(size=waves.shape)).astype(np.float32)


def write_records(folder: Path, rng: np.random.Generator) -> dict[str, int]:
    """Write fresh records; return their sizes by id."""
    labels = np.arange(rng.choice(COUNTS)) % CLASSES
    sizes = {}
    for number, signal in enumerate(draw(rng, labels)):
        name, path = rng.bytes(8).hex(), folder / f"{number:03}.json"
        record = {"id": name, "label": number % CLASSES, "signal": signal.tolist()}
        path.write_text(json.dumps(record))
        sizes[name] = path.stat().st_size
    return sizes


@pytest.fixture(scope="module")
def run(lab: Lab) -> Run:
    """Training on fresh records."""
    folder = lab.path("records")
    sizes = write_records(folder, lab.rng)
    classes = lab.rng.integers(CLASSES, size=64)
    unseen = draw(lab.rng, classes)
    return Run(sizes, classes, lab.probe("trained", folder, epochs=EPOCHS, unseen=unseen))


def test_training_finishes(run: Run) -> None:
    """Both epochs come to their end."""
    require_finished(run.attempt)


@pytest.mark.after("test_training_finishes")
def test_every_sample_once(run: Run) -> None:
    """Every record is seen exactly once in each epoch."""
    for number, epoch in enumerate(run.audit, 1):
        seen = Counter(name for name, _ in epoch)
        missing = len(run.sizes.keys() - seen.keys())
        other = len(epoch) - len(run.sizes) + missing
        if missing or other:
            fail("samples_wrong", epoch=number, missing=missing, other=other)


@pytest.mark.after("test_every_sample_once")
def test_workers_deliver(run: Run) -> None:
    """At least two worker processes read the records in each epoch."""
    evidence = run.attempt.evidence
    workers = [process for process in evidence.processes if process.role == "worker"]
    read, size = sum(process.read for process in workers), sum(run.sizes.values())
    note(workers_seen=len(workers), bytes_read=read, bytes_of_records=size)
    for number, epoch in enumerate(run.audit, 1):
        count = min(len({process for _, process in epoch}), len(workers))
        if count < 2:
            fail("too_few_workers", epoch=number, count=count)
    can_see = not any(what.startswith("bytes read") for what in evidence.missing)
    if can_see and read < REALLY_READ * EPOCHS * size:
        fail("read_elsewhere", percent=f"{read / (EPOCHS * size):.0%}")


@pytest.mark.after("test_training_finishes")
def test_trains_on_the_gpu(run: Run) -> None:
    """The model is trained on the GPU."""
    device = require_answer(run.attempt)["device"]
    if device != "cuda":
        fail("other_device", device=device)


@pytest.mark.after("test_training_finishes")
def test_learns_spectra(run: Run) -> None:
    """The model learns to tell the spectra apart."""
    right = float(np.mean(require_answer(run.attempt)["classes"] == run.classes))
    note(right=right)
    if right < RIGHT:
        fail("learnt_little", right=f"{right:.0%}", wanted=f"{RIGHT:.0%}")
