"""One memory, two names: device tensors lent to the CPU's operators, and results brought home."""

from __future__ import annotations

import ctypes

import torch

from . import runtime
from .settings import refusal

_reinterpret = torch._C._dynamo.guards._reinterpret_tensor  # noqa: SLF001 - no public way is as quick
_empty_strided = torch._C._dynamo.guards._empty_strided_cuda  # noqa: SLF001

_START, _SIZE = runtime.arena()
_END = _START + _SIZE
_arena = torch.frombuffer((ctypes.c_uint8 * _SIZE).from_address(_START), dtype=torch.uint8)
_not_ready = runtime.ready()
_by_dtype: dict[torch.dtype, tuple[torch.Tensor, int]] = {}


def require_device() -> None:
    """Let torch object, in its own words, in a forked child and after a failed assertion."""
    if _not_ready():
        _empty_strided((1,), (1,), torch.uint8)


def _arena_as(dtype: torch.dtype) -> tuple[torch.Tensor, int]:
    """Return all device memory as one CPU tensor of `dtype`, and the dtype's size in bytes."""
    entry = _by_dtype[dtype] = (_arena.view(dtype), dtype.itemsize)
    return entry


def lend(tensor: torch.Tensor) -> torch.Tensor:
    """Return a CPU tensor over the same bytes as a CUDA tensor."""
    if tensor._is_zerotensor():  # noqa: SLF001 - it has no bytes
        return torch.zeros(tensor.shape, dtype=tensor.dtype)
    address = tensor.data_ptr()
    whole, itemsize = _by_dtype.get(tensor.dtype) or _arena_as(tensor.dtype)
    if address == 0:
        return _reinterpret(whole, tensor.size(), tensor.stride(), 0)
    if not _START <= address < _END:
        raise refusal("a CUDA tensor whose memory is not the device's", "make it with torch")
    lent = _reinterpret(whole, tensor.size(), tensor.stride(), (address - _START) // itemsize)
    if tensor.is_conj():
        lent = lent.conj()
    return lent._neg_view() if tensor.is_neg() else lent  # noqa: SLF001 - the public name is this one


def is_lent(tensor: torch.Tensor) -> bool:
    """Say whether a CPU tensor's bytes are device memory."""
    return _START <= tensor.data_ptr() < _END


def to_device(fresh: torch.Tensor) -> torch.Tensor:
    """Return a CUDA tensor, from torch's allocator, with a CPU tensor's bytes and strides."""
    if fresh.layout is not torch.strided:
        raise refusal("making a sparse tensor", "keep it dense, or run this on a GPU")
    if fresh.is_conj() or fresh.is_neg():
        fresh = fresh.resolve_conj().resolve_neg()
    if fresh.is_contiguous():
        home = _empty_strided((*fresh.size(),), fresh.stride(), fresh.dtype)
        size = fresh.nbytes
        if size:
            ctypes.memmove(home.data_ptr(), fresh.data_ptr(), size)
        return home
    # Strides, and bytes between the elements, are part of a result: take the whole storage.
    storage = fresh.untyped_storage()
    size = storage.nbytes()
    whole = _empty_strided((size // fresh.itemsize,), (1,), fresh.dtype)
    ctypes.memmove(whole.data_ptr(), storage.data_ptr(), size)
    return _reinterpret(whole, fresh.size(), fresh.stride(), fresh.storage_offset())


def view_of(owner: torch.Tensor, lent: torch.Tensor) -> torch.Tensor:
    """Return the CUDA tensor that shares `owner`'s storage as `lent` shares its bytes."""
    distance = (lent.data_ptr() - owner.data_ptr()) // lent.itemsize
    return _reinterpret(owner, lent.size(), lent.stride(), distance)


def owns(owner: torch.Tensor, lent: torch.Tensor) -> bool:
    """Say whether `lent`, of the same dtype, begins in `owner`'s storage."""
    storage = owner.untyped_storage()
    start = storage.data_ptr()
    return owner.dtype == lent.dtype and start <= lent.data_ptr() < start + storage.nbytes()
