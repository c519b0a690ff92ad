"""Tell worn surfaces from sound ones in scans of 256 by 256 pixels."""

import random
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE, BATCH = 256, 144
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def write_scans(folder, count, seed=0):
    """Write `count` scans: a byte for the label, 0 or 1, then SIDE * SIDE bytes of pixels."""
    draw = random.Random(seed)
    for n in range(count):
        worn = n % 2
        pixels = bytearray(draw.randbytes(SIDE * SIDE))
        if worn:
            for start in range(0, len(pixels), 16 * SIDE):  # a bright scratch every 16 rows
                pixels[start : start + SIDE] = bytes([220]) * SIDE
        (folder / f"{n:05}.scan").write_bytes(bytes([worn]) + pixels)


class Scans(Dataset):
    """The scans of a folder in the order of their names."""

    def __init__(self, folder):
        self.paths = sorted(folder.glob("*.scan"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        data = bytearray(self.paths[index].read_bytes())
        pixels = torch.frombuffer(data, dtype=torch.uint8, offset=1)
        return pixels.view(1, SIDE, SIDE).float() / 255, data[0]


def batches(folder, workers=2):
    """Yield (scans, labels): float32 from 0 to 1 (BATCH, 1, SIDE, SIDE), int64 (BATCH,)."""
    loader = DataLoader(
        Scans(folder),
        batch_size=BATCH,
        num_workers=workers,
        prefetch_factor=1,
        multiprocessing_context="fork",
    )
    for scans, labels in loader:
        yield scans, labels


def build_model():
    layers = [nn.Conv2d(1, 8, 9, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.BatchNorm1d(8), nn.Linear(8, 2)).to(DEVICE)


def train(folder, epochs=2):
    """Train a model on the scans of a folder."""
    model = build_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for epoch in range(1, epochs + 1):
        for number, (scans, labels) in enumerate(batches(folder), 1):
            loss = nn.functional.cross_entropy(model(scans.to(DEVICE)), labels.to(DEVICE))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch}, batch {number}: loss {loss.item():.3f}", flush=True)


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_scans(folder, 3 * BATCH)
        train(folder)


if __name__ == "__main__":
    main()
