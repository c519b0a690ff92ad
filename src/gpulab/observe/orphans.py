"""The last resort: what a killed grading process left behind."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection

import psutil

ROUNDS = 50


def end_orphans(spare: Collection[int] = ()) -> None:
    """Kill and reap every child of this process whose session is not ours, and their descendants.

    For a process that has called `become_subreaper`. Its own children share its session, or are
    named in `spare` and left alone with all that they started.
    """
    for _ in range(ROUNDS):
        roots = [c for c in psutil.Process().children() if c.pid not in spare and _foreign(c)]
        foreign = [*roots, *_descendants(roots)]
        if not foreign:
            return
        for child in foreign:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        psutil.wait_procs(foreign, timeout=1)


def _descendants(roots: list[psutil.Process]) -> list[psutil.Process]:
    found = []
    for root in roots:
        with contextlib.suppress(psutil.NoSuchProcess):
            found += root.children(recursive=True)
    return found


def _foreign(child: psutil.Process) -> bool:
    with contextlib.suppress(ProcessLookupError):
        return os.getsid(child.pid) != os.getsid(0)
    return False
