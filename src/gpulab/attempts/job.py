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
class Setting:
    """What a process must be told before it can start, whatever its job will be.

    Attributes:
        python: the Python it runs on, by the name that it has where the attempt runs.
        device: what stands behind `cuda`.
        device_bytes: memory of the rehearsal device.
        shm_bytes: size of its /dev/shm; None: whatever there is.
    """

    python: Path
    device: Device
    device_bytes: int = REHEARSAL_BYTES
    shm_bytes: int | None = None

    def environment(self) -> dict[str, str]:
        """A clean environment that shows an attempt its device and nothing of the grader."""
        passed = {
            name: value
            for name, value in os.environ.items()
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in PASSED_ON)
        }
        # Unbuffered, because a pipe is no terminal: lines must arrive when they are printed.
        passed["PYTHONUNBUFFERED"] = "1"
        # Threads that spin while they wait make a shared machine ten times slower, to no use.
        passed.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        if self.device is Device.CPU:
            passed["CUDA_VISIBLE_DEVICES"] = ""
        if self.device is Device.REHEARSAL:
            passed.pop("CUDA_VISIBLE_DEVICES", None)
            passed |= rehearsal.environment(self.device_bytes)
            passed["PYTHONPATH"] = str(rehearsal.SITE)
        return passed


@dataclass(frozen=True)
class Job:
    """One attempt to be made.

    Attributes:
        folder: working folder, and first on the script's path.
        script: the script's name in the folder.
        arguments: its arguments, when it is run.
        call: call a function instead of running the script.
        scratch: folder for temporary files, removed by whoever made it.
        python, device, device_bytes, shm_bytes: see `Setting`.
        shared: folders that the attempt may be given paths of, to read and to write.
        returned: those of them whose changes come back out of a sandbox.
        cold: only a fresh process will do, because the environment is part of the exercise.
    """

    folder: Path
    script: str
    scratch: Path
    arguments: tuple[str, ...] = ()
    call: Call | None = None
    python: Path = Path(sys.executable)
    device: Device = Device.CPU
    device_bytes: int = REHEARSAL_BYTES
    shm_bytes: int | None = None
    shared: tuple[Path, ...] = ()
    returned: tuple[Path, ...] = ()
    cold: bool = False
    limits: Limits = field(default_factory=Limits)

    @property
    def setting(self) -> Setting:
        """What the process must know before the job."""
        return Setting(self.python, self.device, self.device_bytes, self.shm_bytes)

    def environment(self) -> dict[str, str]:
        """The setting's environment, with temporary files in `scratch`."""
        return self.setting.environment() | {"TMPDIR": str(self.scratch)}

    def request(self) -> dict[str, Any]:
        """What the attempt side is told; `function` is None where the script is to be run."""
        call = self.call or Call("")
        return {
            "script": self.script,
            "arguments": list(self.arguments),
            "function": call.function or None,
            "args": list(call.args),
            "kwargs": call.kwargs,
            "probe": None if call.probe is None else str(call.probe),
        }
