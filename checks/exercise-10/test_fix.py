"""Hidden checks of exercise 10.

Two files are read in one attempt, a small one and a large one, with batches of the same size. What
a worker has for itself may be anything; what counts is how much more that is with the large file,
for each ticket more. It is read from outside, while the workers rest.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpulab.evidence import Attempt, Lab, fail, note, require_answer, require_finished, undecided

TEAMS = ("billing", "delivery", "network", "hardware")
WIDTH = 96
SMALL, MORE = 20_000, 100_000
WORKERS = 2
ALLOWED = 16  # bytes that the brief lets a worker keep of a ticket
REALLY_SENT = 0.2  # of an even share of the ids: the last look may come before the last batch
SHUFFLED = 0.1  # the most that place in the file and in the epoch may be correlated


@dataclass(frozen=True)
class Reading:
    """An attempt that reads a small file and a large one."""

    tickets: list[tuple[str, str, str]]  # of the large one: id, text, team
    attempt: Attempt

    def workers(self, file: int) -> list[Any]:
        """The worker processes that were started for a file and delivered."""
        begin, end = (self._time_of(f"{word} {file}") for word in ("file", "end"))
        seen = self.attempt.evidence.processes
        workers = [p for p in seen if p.role == "worker" and begin <= p.started < end]
        if any(what.startswith("bytes read") for what in self.attempt.evidence.missing):
            return workers
        count = MORE if file else SMALL
        least = REALLY_SENT * len(self.tickets[0][0]) * count / WORKERS
        return [worker for worker in workers if worker.written >= least]

    def own_memory(self, file: int) -> float:
        """Bytes that one of these workers had for itself at the end of their rest."""
        end = self._time_of(f"rested {file}")
        seen = [sample for sample in self.attempt.evidence.memory if sample.at <= end]
        return seen[-1].workers / len(self.workers(file))

    def _time_of(self, wanted: str) -> float:
        return next(at for at, name in self.attempt.marks if name == wanted)


def write_tickets(path: Path, count: int, rng: np.random.Generator) -> list[tuple[str, str, str]]:
    """Write fresh tickets in several scripts; return them."""
    alphabets = ("abcdefghij klmn", "äöüß éèñ ", "订单 退款 网络 屏幕", "дом сеть экран")
    pieces = ["".join(rng.choice(list(alphabet), 40)) for alphabet in alphabets * 40]
    chosen = rng.integers(len(pieces), size=(count, 3)).tolist()
    lengths = rng.integers(10, 100, size=count)
    teams = rng.integers(len(TEAMS), size=count)
    salt = rng.bytes(3).hex()
    tickets = []
    with path.open("w", encoding="utf-8") as file:
        for n in range(count):
            text = "".join([pieces[part] for part in chosen[n]])[: lengths[n]]
            ticket = f"{salt}-{n:06x}", text, TEAMS[teams[n]]
            record = dict(zip(("id", "text", "team"), ticket, strict=True))
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
            tickets.append(ticket)
    return tickets


@pytest.fixture(scope="module")
def reading(lab: Lab) -> Reading:
    """Two files of tickets that nobody has seen before, read by one attempt."""
    folder = lab.path("tickets")
    small, large = folder / "small.jsonl", folder / "large.jsonl"
    write_tickets(small, SMALL, lab.rng)
    tickets = write_tickets(large, SMALL + MORE, lab.rng)
    files = [[small, SMALL], [large, SMALL + MORE]]
    return Reading(tickets, lab.probe("deliver", files, workers=WORKERS))


def test_every_ticket(reading: Reading) -> None:
    """Every ticket of a file arrives once, with its bytes and its team."""
    answer = require_answer(reading.attempt)
    if (small := answer["counts"][0]) != SMALL:
        fail("tickets_wrong", wanted=SMALL, got=small, missing=max(0, SMALL - small))
    places = {name: place for place, (name, _, _) in enumerate(reading.tickets)}
    order = [places.get(name, -1) for name in answer["names"]]
    if sorted(order) != list(range(len(places))):
        missing = len(places.keys() - set(answer["names"]))
        fail("tickets_wrong", wanted=len(places), got=len(order), missing=missing)
    texts = b"".join(text.encode()[:WIDTH].ljust(WIDTH, b"\0") for _, text, _ in reading.tickets)
    codes = np.frombuffer(texts, np.uint8).reshape(-1, WIDTH)[order]
    teams = np.array([TEAMS.index(team) for _, _, team in reading.tickets])[order]
    if answer["codes"].shape != codes.shape or answer["teams"].shape != teams.shape:
        fail("shapes_wrong", codes=answer["codes"].shape, teams=answer["teams"].shape)
    wrong = (answer["codes"] != codes).any(axis=1) | (answer["teams"] != teams)
    if wrong.any():
        fail("contents_wrong", count=int(wrong.sum()), total=len(wrong))


@pytest.mark.after("test_every_ticket")
def test_workers_deliver(reading: Reading) -> None:
    """As many worker processes as asked for read the tickets."""
    count = len(reading.workers(1))
    if count < WORKERS:
        fail("too_few_workers", count=count, wanted=WORKERS)


@pytest.mark.after("test_workers_deliver")
def test_memory_stays(reading: Reading) -> None:
    """A worker needs no more memory for a file with more tickets."""
    if any(what.startswith("private memory") for what in reading.attempt.evidence.missing):
        undecided("memory_unseen")
    small, large = reading.own_memory(0), reading.own_memory(1)
    grown = (large - small) / MORE
    note(small_bytes=small, large_bytes=large, bytes_a_ticket=grown)
    if grown > ALLOWED:
        values = {"small": small / 2**20, "large": large / 2**20, "grown": grown}
        fail("climbs", **{name: round(value) for name, value in values.items()})


@pytest.mark.after("test_every_ticket")
def test_shuffled(reading: Reading) -> None:
    """The tickets come in random order."""
    places = {name: place for place, (name, _, _) in enumerate(reading.tickets)}
    order = [places[name] for name in reading.attempt.answer["names"]]
    likeness = abs(float(np.corrcoef(order, np.arange(len(order)))[0, 1]))
    note(likeness=likeness)
    if likeness > SHUFFLED:
        fail("not_shuffled")


@pytest.mark.after("test_memory_stays")
def test_script_finishes(lab: Lab) -> None:
    """`python train.py` comes to its end."""
    require_finished(lab.run())
