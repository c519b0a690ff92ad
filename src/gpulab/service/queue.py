"""Who is next on a GPU share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Ticket:
    """One check's place in the queue."""

    def __init__(self, seat: str, rank: tuple[int, int], moved: Callable[[int], None]) -> None:
        self.seat, self.rank = seat, rank
        self.turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._moved = moved
        self._position = -1

    def move(self, position: int) -> None:
        """Tell whoever waits how many checks come first, when that has changed."""
        if position != self._position:
            self._position = position
            self._moved(position)


class FairQueue:
    """One check at a time, in turn over the seats.

    A seat's rounds are counted: its next check belongs to the round after its last one, or to the
    one that runs now if that is later. Lower rounds come first, and within a round who came first.
    So a seat that asks twice waits behind every other seat's first, and none waits for ever.
    For the event loop's thread alone.
    """

    def __init__(self) -> None:
        self._waiting: list[Ticket] = []
        self._running: Ticket | None = None
        self._round = 0
        self._next_round: dict[str, int] = {}
        self._entered = 0

    def __len__(self) -> int:
        """Checks that wait or run."""
        return len(self._waiting) + (self._running is not None)

    @property
    def seats(self) -> list[str]:
        """The seats in the order of their turns, the running check's first."""
        running = [self._running] if self._running else []
        return [ticket.seat for ticket in (*running, *self._waiting)]

    def enter(self, seat: str, moved: Callable[[int], None]) -> Ticket:
        """Take a place; `moved` is told how many checks come first, now and at each change."""
        mine = max(self._round, self._next_round.get(seat, 0))
        self._next_round[seat] = mine + 1
        self._entered += 1
        ticket = Ticket(seat, (mine, self._entered), moved)
        self._waiting.append(ticket)
        self._waiting.sort(key=lambda waiting: waiting.rank)
        self._advance()
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Give the place up, whether the turn came or not; twice does no harm."""
        if ticket is self._running:
            self._running = None
        elif ticket in self._waiting:
            self._waiting.remove(ticket)
        self._advance()

    def dismiss(self) -> None:
        """Send all away that wait: their turns are cancelled."""
        waiting, self._waiting = self._waiting, []
        for ticket in waiting:
            ticket.turn.cancel()

    def _advance(self) -> None:
        if self._running is None and self._waiting:
            self._running = self._waiting.pop(0)
            self._round = self._running.rank[0]
            self._running.turn.set_result(None)
        for number, ticket in enumerate(self._waiting, start=1):
            ticket.move(number)
