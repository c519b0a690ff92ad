"""Grading processes that were started before they are needed, one for each GPU share."""

from __future__ import annotations

import threading

from gpulab.grading.judges import Judge, Setup


class Spare:
    """At most one grading process at the ready.

    It is started while no check runs on the share, so that nothing of ours competes with an
    attempt that is measured. From any thread.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._lock = threading.Lock()
        self._judge: Judge | None = None
        self._closed = False

    @property
    def ready(self) -> bool:
        """Whether one waits, and all that it makes ready beforehand is."""
        judge = self._judge
        return judge is not None and judge.ready

    def refill(self) -> None:
        """Start one where none waits."""
        with self._lock:
            if self._closed:
                return
            if self._judge is not None:
                if self._judge.alive:
                    return
                self._judge.close()
            self._judge = Judge(self._setup)

    def take(self) -> Judge:
        """The one that waits, or a new one where there is none or it has died."""
        with self._lock:
            judge, self._judge = self._judge, None
        if judge is not None:
            if judge.alive:
                return judge
            judge.close()
        return Judge(self._setup)

    def replace(self) -> None:
        """End the one that waits and start another, after a change of the installation."""
        self._drop()
        self.refill()

    def close(self) -> None:
        """End it for good."""
        self._closed = True
        self._drop()

    def _drop(self) -> None:
        with self._lock:
            judge, self._judge = self._judge, None
        if judge is not None:
            judge.close()
