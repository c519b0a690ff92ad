# ruff: noqa: ANN001, ANN201, ARG005, INP001, PLR2004, PTH123
# mypy: ignore-errors
"""A loop that keeps something of every step, and how its memory grows.

Runs inside an attempt: the standard library and torch, Python 3.9.
"""

import ctypes
import time

import torch
from torch import nn

MMAP_THRESHOLD = -3  # of mallopt: larger blocks go back to the system when they are freed
BATCH, WIDTH = 256, 256

KEEP = {
    "loss.item()": lambda loss, prediction: loss.item(),
    "loss.detach()": lambda loss, prediction: loss.detach(),
    "loss, after backward": lambda loss, prediction: loss,
    "loss, without backward": lambda loss, prediction: loss,
    "prediction, no_grad": lambda loss, prediction: prediction,
    "prediction[:1], no_grad": lambda loss, prediction: prediction[:1],
    "prediction[:1].clone(), no_grad": lambda loss, prediction: prediction[:1].clone(),
}


def memory():
    """Bytes in use now: of the GPU where there is one, else anonymous bytes of this process."""
    if torch.cuda.is_available():
        return torch.cuda.memory_allocated()
    with open("/proc/self/smaps_rollup") as rollup:
        return 1024 * sum(int(line.split()[1]) for line in rollup if line.startswith("Anonymous:"))


def measure(kept, steps):
    """Bytes above the first step's, step by step, and the milliseconds of a step."""
    ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, 65536)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(4)]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, 64)).to(device)
    data = torch.randn(BATCH, WIDTH, device=device)
    history, grown, seconds = [], [], 0.0
    for step in range(steps + 3):
        begun = time.perf_counter()
        with torch.set_grad_enabled("no_grad" not in kept):
            prediction = model(data)
            loss = prediction.pow(2).mean()
        if loss.requires_grad and kept != "loss, without backward":
            loss.backward()
        history.append(KEEP[kept](loss, prediction))
        model.zero_grad()
        del loss, prediction
        if step >= 3:  # what is made once is there
            seconds += time.perf_counter() - begun
            grown.append(memory())
    return {"grown": [now - grown[0] for now in grown], "step_ms": 1000 * seconds / steps}
