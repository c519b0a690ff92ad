"""The tour's rhythm: how long a step stays, and the keys that change that."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable
from typing import Any, Self

LEAST = 1.0  # seconds that a step is shown, however late the tour is
TICK = 0.1
PAUSE, NEXT, QUIT = " ", "n", "q"


class Quit(Exception):  # noqa: N818 - no error
    """The reader has seen enough."""


class Keys:
    """Single keys from the terminal, none where there is no terminal. A context manager."""

    def __init__(self) -> None:
        self._saved: Any = None

    @property
    def there(self) -> bool:
        """Whether there is a terminal to press them on."""
        return self._saved is not None

    def __enter__(self) -> Self:
        if sys.stdin.isatty():
            self._saved = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
        return self

    def __exit__(self, *_: object) -> None:
        if self._saved is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._saved)

    def wait(self, seconds: float) -> str:
        """The key pressed within this time, "" for none.

        Raises:
            Quit: the terminal is gone.
        """
        if self._saved is None:
            time.sleep(seconds)
            return ""
        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        if not ready:
            return ""
        try:  # not by sys.stdin, which would keep the keys after it where `select` cannot see them
            key = os.read(sys.stdin.fileno(), 1)
        except OSError:
            raise Quit from None
        if not key:
            raise Quit
        return key.decode(errors="replace")


class Pace:
    """Keeps to the plan: what a step took too long is made up for by the ones after it.

    Args:
        keys: tells the keys pressed.
        now: seconds of a clock that does not stop.
    """

    def __init__(
        self, keys: Callable[[float], str], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._keys, self._now = keys, now
        self._begun = now()
        self._planned = 0.0
        self.paused = False

    @property
    def elapsed(self) -> float:
        """Seconds of the tour so far, pauses left out."""
        return self._now() - self._begun

    def stay(self, seconds: float, tick: Callable[[], None]) -> None:
        """Wait until a step of `seconds` is over; `tick` is called meanwhile.

        Raises:
            Quit: the reader pressed the key for that.
        """
        self._planned += seconds
        end = max(self._planned, self.elapsed + LEAST)
        while self.elapsed < end:
            before = self._now()
            key = self._keys(min(TICK, end - self.elapsed))
            if key == QUIT:
                raise Quit
            if key == NEXT:
                self._begun -= max(0.0, self._planned - self.elapsed)
                return
            if key == PAUSE:
                self.paused = not self.paused
            if self.paused:
                self._begun += self._now() - before
            tick()
