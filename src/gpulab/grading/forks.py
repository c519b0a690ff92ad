"""Fork servers for whoever judges many cases in a row, one for each device."""

from __future__ import annotations

from threading import Lock
from typing import Self

from gpulab.attempts import ForkServer, Setting
from gpulab.catalogue import Exercise
from gpulab.evidence.report import CannotDecide
from gpulab.grading import machine
from gpulab.grading.judges import Setup
from gpulab.model import Device, LabError
from gpulab.observe import Gpu


class Forks:
    """Starts a fork server when its device is first asked for; at the end of the context ends all.

    Where there can be none, attempts are started afresh.
    """

    def __init__(self) -> None:
        self._servers: dict[Setting, ForkServer | None] = {}
        self._lock = Lock()

    def setup(self, exercise: Exercise, device: Device | None) -> Setup:
        """With the fork server for the device that will stand behind the exercise's `cuda`."""
        try:
            python = machine.attempt_python()
            device = machine.choose_device(exercise, device, python, Gpu())
        except (CannotDecide, LabError):
            return Setup()
        with self._lock:
            setting = Setting(python, device)
            if setting not in self._servers:
                self._servers[setting] = _start(setting)
            return Setup(forks=self._servers[setting])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for server in filter(None, self._servers.values()):
            server.close()


def _start(setting: Setting) -> ForkServer | None:
    try:
        return ForkServer.start(setting)
    except LabError:
        return None
