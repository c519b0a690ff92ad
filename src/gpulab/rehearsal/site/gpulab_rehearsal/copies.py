"""Copies to, from and on the device."""

from __future__ import annotations

import torch

from . import memory, runtime

_in_flight: list[torch.Tensor] = []  # targets that must live until their bytes arrive


def copy_(target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Copy with broadcasting and conversion.

    A copy to pinned host memory that does not wait arrives at the next synchronisation only, the
    latest moment that CUDA allows: whoever reads it earlier reads zeros.
    """
    memory.require_device()
    values = memory.lend(source) if source.is_cuda else source
    if non_blocking and not target.is_cuda and target.is_contiguous() and target.is_pinned():
        _copy_later(target, values)
    else:
        (memory.lend(target) if target.is_cuda else target).copy_(values)
    return target


def _copy_later(target: torch.Tensor, values: torch.Tensor) -> None:
    staged = values.to(target.dtype).expand(target.shape).contiguous()
    staged = staged.resolve_conj().resolve_neg()
    stub = runtime.stub()
    if not stub.rehearsal_copies_pending():
        _in_flight.clear()
    _in_flight.append(target)
    stub.rehearsal_copy_later(target.data_ptr(), staged.data_ptr(), staged.nbytes)
