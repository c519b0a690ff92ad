"""Attempts: an attendee's code run once, in a process of its own, watched from outside."""

from gpulab.attempts import sandbox
from gpulab.attempts.attempt import Attempt, Ended, Limits, Line
from gpulab.attempts.forked import ForkLauncher, ForkServer
from gpulab.attempts.job import Call, Job, Setting
from gpulab.attempts.launch import (
    Launched,
    Launcher,
    LocalLauncher,
    NotPossibleHereError,
    Prepared,
)
from gpulab.attempts.runner import run
from gpulab.attempts.warm import WarmPool

__all__ = [
    "Attempt",
    "Call",
    "Ended",
    "ForkLauncher",
    "ForkServer",
    "Job",
    "Launched",
    "Launcher",
    "Limits",
    "Line",
    "LocalLauncher",
    "NotPossibleHereError",
    "Prepared",
    "Setting",
    "WarmPool",
    "run",
    "sandbox",
]
