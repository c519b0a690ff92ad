"""Observers that watch an attempt, a process and all that it starts, from outside."""

from gpulab.observe.gpu import Device, Gpu
from gpulab.observe.model import (
    Evidence,
    Frame,
    Hang,
    MemorySample,
    ProcessRecord,
    ThreadStack,
    WaitingProcess,
)
from gpulab.observe.observer import Observer, end_everything
from gpulab.observe.orphans import end_orphans
from gpulab.observe.tree import become_subreaper, births, keep_apart

__all__ = [
    "Device",
    "Evidence",
    "Frame",
    "Gpu",
    "Hang",
    "MemorySample",
    "Observer",
    "ProcessRecord",
    "ThreadStack",
    "WaitingProcess",
    "become_subreaper",
    "births",
    "end_everything",
    "end_orphans",
    "keep_apart",
]
