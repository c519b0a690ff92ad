"""Registers the bridge with torch, right after torch's import."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from . import ending, refusals, runtime
from .settings import PREFIX, torch_complaint

# These of torch's own CUDA kernels launch nothing: they allocate, look at shapes, or copy bytes.
_KEPT = frozenset(
    (
        "empty.memory_format",
        "empty_strided",
        "_efficientzerotensor",
        "resize_",
        "set_",
        "set_.source_Storage",
        "set_.source_Storage_storage_offset",
        "set_.source_Tensor",
        "is_set_to",
        "record_stream",
        "_local_scalar_dense",
        "_pin_memory",
        "is_pinned",
        "view",
        "as_strided",
        "_reshape_alias",
        "unfold",
        "view_as_real",
        "view_as_complex",
        "alias",
        "detach",
    )
)
# Torch has generic kernels for these, which would pick a vendor's library.
_ADDED = ("convolution", "convolution_backward")

_libraries: list[Any] = []  # a registration lives as long as its library


def install() -> None:
    """Take the place of torch's CUDA kernels.

    Raises:
        RuntimeError: This torch is no CUDA build, or not one of the supported versions.
    """
    complaint = torch_complaint(torch.__version__, torch.version.cuda)
    if complaint is not None:
        raise RuntimeError(f"{PREFIX} {complaint}")
    runtime.set_version(torch.version.cuda)
    from . import copies, operators, sparse  # noqa: PLC0415 - they use internals of supported versions
    from .substitutes import SUBSTITUTES  # noqa: PLC0415

    names = set(_registered("CUDA")) | set(_ADDED) | set(SUBSTITUTES)
    library = torch.library.Library("aten", "IMPL")
    _libraries.append(library)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch remarks on every kernel that is replaced
        library.impl("copy_", copies.copy_, "CUDA")
        for name in sorted(names - _KEPT):
            library.impl(name, operators.Operator(name, own_kernel(name, "CUDA")), "CUDA")
        for key in sparse.KEYS:
            for name in _registered(key):
                library.impl(name, sparse.Refusing(name, key, own_kernel(name, key)), key)
    _choose_plain_attention()
    refusals.install()
    ending.install()


def _registered(key: str) -> list[str]:
    """Return the operators that torch has kernels of its own for, without their namespace."""
    registered = torch._C._dispatch_get_registrations_for_dispatch_key(key)  # noqa: SLF001
    return [name[len("aten::") :] for name in registered if name.startswith("aten::")]


def own_kernel(name: str, key: str) -> Any:
    """Return torch's own kernel, or None."""
    try:
        return torch.library.get_kernel(f"aten::{name}", key)
    except RuntimeError:
        return None


def _choose_plain_attention() -> None:
    """Let attention take the path that has CPU kernels; no operator makes that choice."""
    torch._C._set_sdp_use_flash(False)  # noqa: SLF001 - torch.backends.cuda calls the same
    torch._C._set_sdp_use_mem_efficient(False)  # noqa: SLF001
    torch._C._set_sdp_use_cudnn(False)  # noqa: SLF001
