"""Hidden checks of exercise 19. Every attempt has the /dev/shm that exercise.toml says."""

from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpulab.evidence import Attempt, Ended, Lab, fail, note, require_answer, require_finished

SIDE, BATCH = 256, 144
WORKERS = 2
BATCHES = 6  # full ones, more than the loader orders in advance
TYPES = ["torch.float32", "torch.int64", "cpu"]
LIKE = 1e-4  # of products with a key of unit length; a pixel's byte is worth 0.004 in one
REALLY_READ = 0.8  # of an even share; a worker that fails at once has read less


@dataclass(frozen=True)
class Use:
    """Scans that nobody has seen before, and the attempt to use them."""

    pixels: np.ndarray  # (scans, SIDE * SIDE)
    labels: list[int]
    key: np.ndarray
    attempt: Attempt

    @property
    def sizes(self) -> list[int]:
        """How many scans each batch should hold."""
        return [BATCH] * BATCHES + [len(self.labels) - BATCH * BATCHES]


def write_scans(folder: Path, count: int, rng: np.random.Generator) -> tuple[np.ndarray, list[int]]:
    """Write fresh scans; return their pixels and labels."""
    pixels = rng.integers(256, size=(count, SIDE * SIDE), dtype=np.uint8)
    labels = rng.integers(2, size=count).tolist()
    for number, (scan, label) in enumerate(zip(pixels, labels, strict=True)):
        (folder / f"{number:04}.scan").write_bytes(bytes([label]) + scan.tobytes())
    return pixels, labels


@pytest.fixture(scope="module")
def use(lab: Lab) -> Use:
    """Batches of fresh scans, used slowly."""
    folder = lab.path("scans")
    count = BATCH * BATCHES + int(lab.rng.integers(8, 40))
    pixels, labels = write_scans(folder, count, lab.rng)
    key = lab.rng.normal(size=SIDE * SIDE)
    key /= np.linalg.norm(key)
    return Use(pixels, labels, key, lab.probe("use", folder, WORKERS, key))


def test_batches_arrive(use: Use) -> None:
    """All batches arrive with 64 MiB of /dev/shm."""
    # A batch that finds no room in the thread that sends it is lost, and the loader waits for it.
    error = use.attempt.error
    lost = use.attempt.ended is Ended.HANG
    if lost or (error is not None and "DataLoader worker" in error.message):
        came = sum(name == "batch" for _, name in use.attempt.marks)
        fail("no_more_came", came=came, count=len(use.sizes))
    require_answer(use.attempt)


@pytest.mark.after("test_batches_arrive")
def test_same_batches(use: Use) -> None:
    """Every scan comes once, in its batch, with its values and its label."""
    found = use.attempt.answer
    shapes = [batch["shape"] for batch in found]
    wanted = [[size, 1, SIDE, SIDE] for size in use.sizes]
    if shapes != wanted:
        fail("shapes_differ", found=shapes[:3], wanted=wanted[:3], count=len(shapes))
    for batch in found:
        if batch["types"] != TYPES:
            fail("types_differ", found=batch["types"], wanted=TYPES)
    if list(chain(*(batch["labels"] for batch in found))) != use.labels:
        fail("labels_differ")
    products = np.array(list(chain(*(batch["products"] for batch in found))))
    wrong = ~np.isclose(products, use.pixels / 255 @ use.key, rtol=0, atol=LIKE)
    if wrong.any():
        fail("values_differ", count=int(wrong.sum()), total=len(wrong))


@pytest.mark.after("test_batches_arrive")
def test_workers_read(use: Use) -> None:
    """As many worker processes as asked for read the files."""
    workers: list[Any] = [p for p in use.attempt.evidence.processes if p.role == "worker"]
    note(bytes_read=[worker.read for worker in workers])
    if not any(what.startswith("bytes read") for what in use.attempt.evidence.missing):
        share = use.pixels.size / WORKERS
        workers = [worker for worker in workers if worker.read >= REALLY_READ * share]
    if len(workers) < WORKERS:
        fail("too_few_workers", count=len(workers), wanted=WORKERS)


@pytest.mark.after("test_batches_arrive")
def test_script_finishes(lab: Lab) -> None:
    """The script trains both epochs."""
    require_finished(lab.run())
