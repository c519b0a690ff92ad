"""Hidden checks of exercise 4."""

import json
import re
import statistics
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpulab.evidence import Attempt, Lab, fail, note, require_answer, require_finished

EPOCHS = 2
SAMPLES = 16384
COUNTS = range(64, 81)  # eight batches at least: work for as many workers as anybody starts
LIMIT_SAME = 1e-3
REALLY_READ = 0.5  # of a worker's records: its last look may come before its last read


@dataclass(frozen=True)
class Run:
    """Records that nobody has seen before, and the attempt to train on them."""

    sizes: dict[str, int]  # bytes by record id
    limit: float  # the clip limit that a refresh must find
    attempt: Attempt

    @property
    def audit(self) -> list[list[tuple[str, int]]]:
        """For every epoch, the (record id, process) of each sample."""
        answer = require_answer(self.attempt)
        if not well_formed(answer):
            fail("audit_malformed")
        return [[(name, process) for name, process in epoch] for epoch in answer]


def well_formed(answer: Any) -> bool:
    """Whether an answer is a list of epochs, each a list of (record id, process)."""
    return isinstance(answer, list) and all(
        isinstance(epoch, list) and all(is_sample(sample) for sample in epoch) for epoch in answer
    )


def is_sample(sample: Any) -> bool:
    """Whether it is a pair of a record id and a process number."""
    return (
        isinstance(sample, list)
        and len(sample) == 2
        and isinstance(sample[0], str)
        and type(sample[1]) is int
    )


def write_records(folder: Path, rng: np.random.Generator) -> tuple[dict[str, int], float]:
    """Write fresh records; return their sizes by id and the median of their peaks."""
    sizes, peaks = {}, []
    for number in range(rng.choice(COUNTS)):
        name = rng.bytes(8).hex()
        signal = rng.normal(0, rng.uniform(4, 8), SAMPLES).round(4)
        record = {"id": name, "label": number % 4, "signal": signal.tolist()}
        path = folder / f"{number:03}.json"
        path.write_text(json.dumps(record))
        sizes[name] = path.stat().st_size
        peaks.append(float(abs(signal).max()))
    return sizes, statistics.median(peaks)


@pytest.fixture(scope="module")
def run(lab: Lab) -> Run:
    """Training on fresh records."""
    folder = lab.path("records")
    sizes, limit = write_records(folder, lab.rng)
    return Run(sizes, limit, lab.call("train", folder, epochs=EPOCHS))


def test_training_finishes(run: Run) -> None:
    """Both epochs come to their end."""
    require_finished(run.attempt)


@pytest.mark.after("test_training_finishes")
def test_every_sample_once(run: Run) -> None:
    """Every record is seen exactly once in each epoch."""
    if len(run.audit) != EPOCHS:
        fail("epochs_wrong", count=len(run.audit), expected=EPOCHS)
    for number, epoch in enumerate(run.audit, 1):
        seen = Counter(name for name, _ in epoch)
        missing = len(run.sizes.keys() - seen.keys())
        repeated = sum(count > 1 for count in seen.values())
        unknown = len(seen.keys() - run.sizes.keys())
        if missing or repeated or unknown:
            fail("samples_wrong", epoch=number, missing=missing, repeated=repeated, unknown=unknown)


@pytest.mark.after("test_every_sample_once")
def test_workers_deliver(run: Run) -> None:
    """At least two worker processes deliver samples in each epoch."""
    claimed = bytes_by_process(run)
    read = [process.read for process in workers(run.attempt)]
    note(workers_seen=len(read), bytes_read=read, processes_in_audit=len(claimed))
    for number, epoch in enumerate(run.audit, 1):
        count = min(len({process for _, process in epoch}), len(read))
        if count < 2:
            fail("too_few_workers", epoch=number, count=count)
    if not can_see_reads(run.attempt):
        return
    # Process numbers inside a container are not those outside it: compare amounts, largest first.
    needed = sorted(claimed.values(), reverse=True)
    found = sorted(read, reverse=True)[: len(needed)]
    if len(found) < len(needed) or any(
        have < REALLY_READ * want for have, want in zip(found, needed, strict=True)
    ):
        fail("read_elsewhere", claimed=len(needed), seen=len(read))


@pytest.mark.after("test_workers_deliver")
def test_no_worker_lost(run: Run) -> None:
    """Every worker that is started delivers samples."""
    started, delivered = len(workers(run.attempt)), len(bytes_by_process(run))
    if started > delivered:
        fail("worker_lost", started=started, lost=started - delivered)


@pytest.mark.after("test_training_finishes")
def test_refresh_beside_training(run: Run) -> None:
    """The clip limit is refreshed while each epoch runs."""
    said = [(line.at, line.text) for line in run.attempt.lines if line.stream == "stdout"]
    limits = re.findall(r"clip limit: refresh \d+ done, (\d+\.\d+)", run.attempt.output("stdout"))
    if wrong := [limit for limit in limits if abs(float(limit) - run.limit) > LIMIT_SAME]:
        fail("limit_wrong", found=wrong[0], wanted=f"{run.limit:.4f}")
    begin = 0.0
    for epoch in range(1, EPOCHS + 1):
        ended = time_of(said, f"epoch {epoch}:")
        under_way = time_of(said, f"clip limit: refresh {epoch} under way")
        done = time_of(said, f"clip limit: refresh {epoch} done")
        begin = min(
            (w.started for w in workers(run.attempt) if begin <= w.started < ended), default=begin
        )
        note(**{f"epoch_{epoch}": [begin, ended], f"refresh_{epoch}": [under_way, done]})
        if under_way > ended or done < begin:
            fail("refresh_idle", epoch=epoch)
        begin = ended


def time_of(said: list[tuple[float, str]], words: str) -> float:
    """When the line with these words came; fails the check where none did."""
    # Two threads print, so their lines may run together: look inside them.
    times = [at for at, text in said if words in text]
    if not times:
        fail("line_missing", words=words)
    return times[0]


def workers(attempt: Attempt) -> list[Any]:
    """The loader's worker processes, as seen from outside."""
    return [process for process in attempt.evidence.processes if process.role == "worker"]


def can_see_reads(attempt: Attempt) -> bool:
    """Whether the observers had the right to see how much each process read."""
    return not any(what.startswith("bytes read") for what in attempt.evidence.missing)


def bytes_by_process(run: Run) -> Counter[int]:
    """How many bytes of records each process of the audit must have read."""
    amounts: Counter[int] = Counter()
    for name, process in (sample for epoch in run.audit for sample in epoch):
        amounts[process] += run.sizes[name]
    return amounts
