"""Sparse, nested and quantised tensors keep torch's own kernels, many of which call dense ones.

One that launches a kernel of its own is refused by name.
"""

from __future__ import annotations

from typing import Any

import torch

from .settings import PREFIX, refusal

KEYS = ("SparseCUDA", "SparseCsrCUDA", "NestedTensorCUDA", "QuantizedCUDA")
_LIBRARY_MARKS = ("cusparse", "CUDNN_STATUS", "CUBLAS_STATUS")


class Refusing:
    """Torch's own kernel, whose wish for a GPU becomes a refusal."""

    def __init__(self, name: str, key: str, own: Any) -> None:
        self.name = name
        self.key = key
        self.own = own
        self.keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))  # noqa: SLF001

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call torch's own kernel."""
        try:
            return self.own.call_boxed(self.keys, *args, **kwargs)
        except RuntimeError as error:
            text = str(error)
            if f"{PREFIX} kernel" not in text and not any(mark in text for mark in _LIBRARY_MARKS):
                raise
        kind = self.key[: -len("CUDA")]
        raise refusal(
            f"aten::{self.name} on {kind} tensors, a kernel of its own,",
            "use dense tensors, or run this on a GPU",
        )
