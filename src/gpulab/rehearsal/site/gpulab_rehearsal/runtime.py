"""The runtime stub, loaded into this process."""

from __future__ import annotations

import ctypes
import os
from typing import Callable

from .settings import CAPACITY, STUB, driver_complaint, refusal

DEVICE_ASSERT = 710
"""CUDA's number for "device-side assert triggered"."""

_stub: ctypes.CDLL | None = None


def load() -> None:
    """Load the stub ahead of torch's libcudart, with global symbols, and reserve the memory.

    Raises:
        RuntimeError: A real driver is there, or the addresses for the memory are not to be had.
    """
    global _stub  # noqa: PLW0603 - one device in a process
    complaint = driver_complaint()
    if complaint is not None:
        raise RuntimeError(f"rehearsal device: {complaint}")
    _refuse_other_allocators()
    stub = ctypes.CDLL(os.environ[STUB], mode=ctypes.RTLD_GLOBAL)
    stub.rehearsal_reserve.argtypes = [ctypes.c_size_t]
    stub.rehearsal_arena.argtypes = [ctypes.POINTER(ctypes.c_size_t)]
    stub.rehearsal_arena.restype = ctypes.c_void_p
    stub.rehearsal_copy_later.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    capacity = int(os.environ[CAPACITY])
    if stub.rehearsal_reserve(capacity):
        raise refusal(f"a device with {capacity} bytes of memory", "ask for a smaller capacity")
    _stub = stub


def _refuse_other_allocators() -> None:
    """Torch's plain caching allocator is the one that the stub serves."""
    for variable in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        settings = os.environ.get(variable, "").replace(" ", "")
        for setting in ("expandable_segments:True", "backend:cudaMallocAsync"):
            if setting in settings:
                raise refusal(
                    f"{variable}={setting}", "leave the setting out, or run this on a GPU"
                )


def stub() -> ctypes.CDLL:
    """Return the loaded stub."""
    if _stub is None:
        message = "rehearsal device: the runtime stub is not loaded"
        raise RuntimeError(message)
    return _stub


def ready() -> Callable[[], int]:
    """Return a quick function that is 0 while this process may use the device."""
    quick = ctypes.PyDLL("", handle=stub()._handle)  # noqa: SLF001 - keeps the interpreter's lock
    return quick.rehearsal_ready  # type: ignore[no-any-return] # ctypes' functions are untyped


def set_version(cuda: str) -> None:
    """Say which CUDA the driver and the runtime are; `cuda` like 13.0."""
    major, minor = cuda.split(".")[:2]
    stub().rehearsal_set_version(int(major) * 1000 + int(minor) * 10)


def arena() -> tuple[int, int]:
    """Return the first address of device memory and the number of addresses."""
    size = ctypes.c_size_t()
    start = stub().rehearsal_arena(ctypes.byref(size))
    return int(start), size.value
