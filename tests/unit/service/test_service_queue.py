"""Whose turn it is."""

import asyncio
import random
from collections import Counter

from gpulab.service.queue import FairQueue, Ticket


class Line:
    """A queue, and the order in which it served."""

    def __init__(self) -> None:
        self.queue = FairQueue()
        self.tickets: list[tuple[str, Ticket]] = []
        self.positions: dict[str, list[int]] = {}
        self.served: list[str] = []

    def enter(self, name: str) -> None:
        seen = self.positions.setdefault(name, [])
        self.tickets.append((name, self.queue.enter(name[0], seen.append)))

    def leave(self, name: str) -> None:
        (found,) = (entry for entry in self.tickets if entry[0] == name)
        self.tickets.remove(found)
        self.queue.leave(found[1])

    def serve(self) -> str:
        """End the check that runs; returns its name."""
        name, ticket = next(entry for entry in self.tickets if entry[1].turn.done())
        self.tickets.remove((name, ticket))
        self.served.append(name)
        self.queue.leave(ticket)
        return name

    def serve_all(self) -> list[str]:
        while self.tickets:
            self.serve()
        return self.served


def in_loop(body):
    async def run() -> None:
        body()

    asyncio.run(run())


def test_a_seats_second_check_waits_behind_the_others_first() -> None:
    def body() -> None:
        line = Line()
        for name in ("a1", "a2", "a3", "b1", "c1", "b2"):
            line.enter(name)
        assert line.serve_all() == ["a1", "b1", "c1", "a2", "b2", "a3"]

    in_loop(body)


def test_having_asked_alone_costs_no_more_than_the_round_just_had() -> None:
    def body() -> None:
        line = Line()
        for number in range(10):  # a alone, one after the other
            line.enter(f"a{number}")
            line.serve()
        for name in ("b1", "a8", "b2", "c1", "c2"):
            line.enter(name)
        assert line.serve_all()[10:] == ["b1", "c1", "a8", "b2", "c2"]

    in_loop(body)


def test_nobody_waits_for_ever() -> None:
    def body() -> None:
        line = Line()
        line.enter("x1")
        line.enter("x2")
        for number in range(20):  # a stream of first checks
            for seat in "abc":
                line.enter(f"{seat}{number}")
            line.serve()
            if "x2" in line.served:
                break
        assert line.served.index("x2") <= 5

    in_loop(body)


def test_between_two_checks_of_a_waiting_seat_every_other_gets_at_most_two() -> None:
    def body() -> None:
        chance = random.Random(1)  # noqa: S311 - no secret
        line, seats = Line(), "abcdefgh"
        waiting: Counter[str] = Counter()
        serial = iter(range(10_000))
        since: dict[str, Counter[str]] = {seat: Counter() for seat in seats}
        for _ in range(3000):
            seat = chance.choice(seats)
            if waiting[seat] < 3:
                line.enter(f"{seat}{next(serial)}")
                waiting[seat] += 1
                if waiting[seat] == 1:
                    since[seat].clear()
            if chance.random() < 0.6 and line.tickets:
                served = line.serve()[0]
                waiting[served] -= 1
                since[served].clear()
                for other in seats:
                    since[other][served] += 1
                    assert not waiting[other] or since[other][served] <= 3
        assert min(Counter(name[0] for name in line.served).values()) > 100

    in_loop(body)


def test_positions_are_told_as_they_change() -> None:
    def body() -> None:
        line = Line()
        for name in ("a1", "b1", "c1"):
            line.enter(name)
        line.leave("b1")  # its client went away
        line.leave("a1")
        assert line.positions == {"a1": [], "b1": [1], "c1": [2, 1]}
        assert line.tickets[0][1].turn.done()

    in_loop(body)


def test_leaving_twice_does_no_harm() -> None:
    def body() -> None:
        queue = FairQueue()
        first, second = queue.enter("a", lambda _: None), queue.enter("b", lambda _: None)
        queue.leave(first)
        queue.leave(first)
        assert second.turn.done()
        assert len(queue) == 1

    in_loop(body)


def test_dismissed_tickets_are_cancelled_and_the_running_one_is_not() -> None:
    def body() -> None:
        queue = FairQueue()
        running, waiting = queue.enter("a", lambda _: None), queue.enter("b", lambda _: None)
        queue.dismiss()
        assert waiting.turn.cancelled()
        assert running.turn.done()
        assert not running.turn.cancelled()
        queue.leave(waiting)

    in_loop(body)
