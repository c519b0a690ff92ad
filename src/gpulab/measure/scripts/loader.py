# ruff: noqa: ANN001, ANN201, ANN202, ANN204, INP001, PTH123, UP031
# mypy: ignore-errors
"""One epoch over images that are decoded on the spot, with so many loader workers.

Runs inside an attempt: the standard library and torch, Python 3.9.
"""

import multiprocessing
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCH = 32
LOOK_EVERY = 12  # batches between two looks at the memory


class Photos(Dataset):
    """Photos of `side` by `side` pixels; one costs about what decoding a JPEG does."""

    def __init__(self, count, side):
        self.count, self.side = count, side
        self.coarse = torch.randint(0, 256, (64, 3, 24, 24), dtype=torch.uint8)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        coarse = self.coarse[index % len(self.coarse)][None].float()
        photo = nn.functional.interpolate(coarse, size=(self.side, self.side), mode="bicubic")[0]
        edge = self.side // 8
        photo = photo[:, edge:-edge, edge:-edge].flip(-1) / 255
        small = nn.functional.interpolate(photo[None], size=(64, 64), mode="bilinear")[0]
        return (small - small.mean()) / small.std(), index % 10


def memory():
    """Bytes of this process and its workers together, shared pages counted once."""
    total = 0
    for pid in [os.getpid(), *(child.pid for child in multiprocessing.active_children())]:
        with open("/proc/%d/smaps_rollup" % pid) as rollup:
            total += 1024 * sum(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
    return total


def measure(workers, images, side):
    """Seconds of an epoch after a warm-up, the share of it that the model computes, and memory."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(
        *(nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 5, stride=2), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10)),
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(photos, labels):
        photos, labels = photos.to(device, non_blocking=True), labels.to(device)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(photos), labels).backward()
        optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()

    step(torch.randn(BATCH, 3, 64, 64), torch.zeros(BATCH, dtype=torch.long))
    loader = DataLoader(
        Photos(images, side), BATCH, num_workers=workers, pin_memory=device == "cuda"
    )
    busy = looked = peak = 0.0
    begun = time.perf_counter()
    for number, (photos, labels) in enumerate(loader):
        entered = time.perf_counter()
        step(photos, labels)
        done = time.perf_counter()
        busy += done - entered
        if number % LOOK_EVERY == LOOK_EVERY // 2:
            peak = max(peak, memory())
            looked += time.perf_counter() - done
    whole = time.perf_counter() - begun - looked
    return {"epoch_s": whole, "busy": busy / whole, "memory_mib": peak / 2**20}
