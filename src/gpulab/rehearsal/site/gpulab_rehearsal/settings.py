"""What the launcher and the bridge agree on."""

from __future__ import annotations

STUB = "GPULAB_REHEARSAL_STUB"
"""Environment variable: path of the compiled runtime stub."""

CAPACITY = "GPULAB_REHEARSAL_CAPACITY"
"""Environment variable: the device's memory in bytes."""

OLDEST_TORCH, NEWEST_TORCH = (2, 11), (2, 14)

PREFIX = "rehearsal device:"
"""Every refusal begins with this."""


def refusal(what: str, instead: str) -> RuntimeError:
    """Return the error that refuses `what`, a noun phrase, and says what to do `instead`."""
    return RuntimeError(f"{PREFIX} {what} cannot be rehearsed; {instead}")


def torch_complaint(version: str, cuda: str | None) -> str | None:
    """Return why this torch cannot be used, or None.

    Args:
        version: Like 2.14.1+cu130.
        cuda: Like 13.0, or None for a CPU build.
    """
    supported = "torch 2.11 to 2.14, a CUDA build"
    if cuda is None:
        return f"torch {version} is no CUDA build; install {supported}"
    major, minor = version.split(".")[:2]
    if not OLDEST_TORCH <= (int(major), int(minor)) <= NEWEST_TORCH:
        return f"torch {version} is not supported; install {supported}"
    return None


def driver_complaint() -> str | None:
    """Return why this machine needs no rehearsal, or None. Call it before the stub is loaded."""
    import ctypes  # noqa: PLC0415 - most processes never get here
    import glob  # noqa: PLC0415

    if glob.glob("/dev/nvidia[0-9]*"):
        return "this machine has an NVIDIA GPU; use it instead"
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    return "this machine has an NVIDIA driver (libcuda.so.1); use the real device instead"
