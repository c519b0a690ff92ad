# ruff: noqa: ANN001, ANN201, INP001
# mypy: ignore-errors
"""How long a loader takes to its first batch, by start method and number of workers.

Runs inside an attempt: the standard library and torch, Python 3.9.
"""

import time

import torch
from torch.utils.data import DataLoader, TensorDataset


def measure(method, workers):
    """Seconds from asking for the iterator to the first batch; then to the end."""
    data = TensorDataset(torch.arange(64.0))
    loader = DataLoader(data, 4, num_workers=workers, multiprocessing_context=method)
    begun = time.perf_counter()
    batches = iter(loader)
    next(batches)
    first = time.perf_counter() - begun
    list(batches)
    return {"first_s": first, "epoch_s": time.perf_counter() - begun}
