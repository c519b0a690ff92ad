"""A quiet end: the interpreter must not be taken down while autograd's thread is in it.

Torch computes gradients of `cuda` tensors in a thread of its own. Here its operators are Python, so
that thread may still be on its way out of the interpreter when `backward` has returned and the
script ends; Python then ends the thread by force, which C++ answers with `terminate`.
"""

from __future__ import annotations

import atexit
import os
import time

_LOOK_EVERY = 0.005
_QUIET_LOOKS = 3  # in a row, before the interpreter may go
_AT_MOST = 2.0  # seconds; a thread of the script's own may work for ever


def install() -> None:
    """Wait at the end of the process; what the script itself registers comes first."""
    atexit.register(_let_threads_settle)


def _let_threads_settle() -> None:
    deadline = time.monotonic() + _AT_MOST
    quiet, before = 0, None
    while quiet < _QUIET_LOOKS and time.monotonic() < deadline:
        time.sleep(_LOOK_EVERY)  # gives the interpreter to whoever waits for it
        now = _others_at_work()
        quiet = quiet + 1 if now == before else 0
        before = now


def _others_at_work() -> dict[str, tuple[str, ...]]:
    """Return state and switches of every other thread; the same twice means that none moved."""
    main, found = str(os.getpid()), {}
    kept = ("State", "voluntary", "nonvoluntary")
    for thread in os.listdir("/proc/self/task"):
        if thread == main:
            continue
        try:
            with open(f"/proc/self/task/{thread}/status") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        found[thread] = tuple(line for line in lines if line.startswith(kept))
    return found
