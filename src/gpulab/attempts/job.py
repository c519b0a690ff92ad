"""What an attempt is asked to do, and the environment it does it in."""

from __future__ import annotations

import fnmatch
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpulab.attempts.attempt import Limits
from gpulab.model import Device
from gpulab.rehearsal import launch as rehearsal

CHILD = Path(__file__).with_name("child.py")
REHEARSAL_BYTES = 2 << 30

# Everything else, PYTHONPATH, LD_PRELOAD and what pytest reads among it, stays outside an attempt.
PASSED_ON = [
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_*", "TZ", "LD_LIBRARY_PATH"),
    *("XDG_CACHE_HOME", "VIRTUAL_ENV", "CUDA_*", "NVIDIA_*", "NCCL_*", "TORCH_*", "PYTORCH_*"),
    *("OMP_*", "MKL_*", "OPENBLAS_*", "KMP_*"),
]


@dataclass(frozen=True)
class Call:
    """A function of the script, or of `probe`, to be called with these arguments."""

    function: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    probe: Path | None = None


@dataclass(frozen=True)
class Job:
    """One attempt to be made.

    Attributes:
        folder: working folder, and first on the script's path.
        script: the script's name in the folder.
        arguments: its arguments, when it is run.
        call: call a function instead of running the script.
        scratch: folder for temporary files, removed by whoever made it.
        device_bytes: memory of the rehearsal device.
    """

    folder: Path
    script: str
    scratch: Path
    arguments: tuple[str, ...] = ()
    call: Call | None = None
    python: Path = Path(sys.executable)
    device: Device = Device.CPU
    device_bytes: int = REHEARSAL_BYTES
    limits: Limits = field(default_factory=Limits)

    def environment(self) -> dict[str, str]:
        """A clean environment that shows the attempt its device and nothing of the grader."""
        passed = {
            name: value
            for name, value in os.environ.items()
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in PASSED_ON)
        }
        # Unbuffered, because a pipe is no terminal: lines must arrive when they are printed.
        passed |= {"TMPDIR": str(self.scratch), "PYTHONUNBUFFERED": "1"}
        if self.device is Device.CPU:
            passed["CUDA_VISIBLE_DEVICES"] = ""
        if self.device is Device.REHEARSAL:
            passed.pop("CUDA_VISIBLE_DEVICES", None)
            passed |= rehearsal.environment(self.device_bytes)
            passed["PYTHONPATH"] = str(rehearsal.SITE)
        return passed

    def request(self) -> dict[str, Any]:
        """What the attempt side is told; only for a job with a call."""
        if self.call is None:
            raise TypeError("a job without a call runs the script and is told nothing")
        return {
            "script": self.script,
            "function": self.call.function,
            "args": list(self.call.args),
            "kwargs": self.call.kwargs,
            "probe": None if self.call.probe is None else str(self.call.probe),
        }
