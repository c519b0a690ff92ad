# ruff: noqa: ANN001, ANN201, ANN202, INP001, PTH123
# mypy: ignore-errors
"""Memory and time of a training step by what zero_grad leaves behind.

Runs inside an attempt: the standard library and torch, Python 3.9.
"""

import ctypes
import time

import torch
from torch import nn

MMAP_THRESHOLD = -3  # of mallopt: larger blocks go back to the system when they are freed
LAYERS = 8


def memory():
    """Bytes in use now: of the GPU where there is one, else anonymous bytes of this process."""
    if torch.cuda.is_available():
        return torch.cuda.memory_allocated()
    with open("/proc/self/smaps_rollup") as rollup:
        return 1024 * sum(int(line.split()[1]) for line in rollup if line.startswith("Anonymous:"))


def measure(leaves, steps, width):
    """Milliseconds of a step, and the bytes that one more step uses, moment by moment.

    Args:
        leaves: what zero_grad leaves: "none", "zeros", or "default", what it does unasked.
        steps: how many are timed.
        width: of the layers.
    """
    ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, 65536)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    data = torch.randn(width, width, device=device)
    nn.Linear(width, width).to(device)(data).sum().backward()  # buffers that are made once
    before = memory()
    layers = [nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(LAYERS)]
    model = nn.Sequential(*layers).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    options = {} if leaves == "default" else {"set_to_none": leaves == "none"}

    def look(moment):
        if looking:
            used.append((moment, memory() - before))

    def train():
        optimizer.zero_grad(**options)
        look("cleared")
        loss = model(data).pow(2).mean()
        look("forward")
        loss.backward()
        look("backward")
        optimizer.step()
        look("step")

    used, looking, seconds = [], False, []
    for _ in range(steps):
        begun = time.perf_counter()
        train()
        seconds.append(time.perf_counter() - begun)
    looking = True
    for layer in layers:
        layer.register_full_backward_hook(lambda *_: look("a layer's backward"))
    train()
    return {"used": used, "step_ms": 1000 * sorted(seconds)[steps // 2]}
