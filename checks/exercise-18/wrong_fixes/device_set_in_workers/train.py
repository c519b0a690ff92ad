"""Classify vibration records by their dominant frequency, on the GPU."""

import json
import os
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES, SAMPLES, LINES = 4, 2048, 256
DEVICE = torch.device("cuda")


def write_records(folder, count=64, seed=0):
    """Write `count` records; record n is a noisy sine of class n % CLASSES."""
    folder.mkdir(exist_ok=True)
    generator = torch.Generator().manual_seed(seed)
    clock = torch.linspace(0, 1, SAMPLES)
    for n in range(count):
        label = n % CLASSES
        noise = torch.randn(SAMPLES, generator=generator)
        signal = torch.sin(2 * torch.pi * (40 + 50 * label) * clock) + noise
        signal = [round(value, 4) for value in signal.tolist()]
        record = {"id": f"{seed}-{n:03}", "label": label, "signal": signal}
        (folder / f"{n:03}.json").write_text(json.dumps(record))


class Records(Dataset):
    """Spectra of the records in a folder."""

    def __init__(self, folder):
        self.paths = sorted(folder.glob("*.json"))
        self.window = torch.hann_window(SAMPLES, device=DEVICE)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        record = json.loads(self.paths[index].read_text())
        signal = torch.tensor(record["signal"], device=DEVICE)
        spectrum = torch.fft.rfft(signal * self.window).abs()[:LINES]
        return spectrum, record["label"], record["id"], os.getpid()


def use_device(worker):
    torch.cuda.set_device(worker % torch.cuda.device_count())


def build_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.LayerNorm(LINES), nn.Linear(LINES, CLASSES)).to(DEVICE)


def train(model, records, epochs=2):
    """Train a model on the records in a folder.

    Returns, for every epoch, the (id, process) of each sample.
    """
    loader = DataLoader(
        Records(records),
        batch_size=8,
        shuffle=True,
        num_workers=2,
        worker_init_fn=use_device,
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    audit = []
    for epoch in range(1, epochs + 1):
        seen = []
        for spectra, labels, names, processes in loader:
            loss = nn.functional.cross_entropy(model(spectra.to(DEVICE)), labels.to(DEVICE))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen.extend(zip(names, processes.tolist()))
        audit.append(seen)
        print(f"epoch {epoch}: {len(seen)} samples, loss {loss.item():.3f}")
    return audit


if __name__ == "__main__":
    folder = Path("records")
    write_records(folder)
    train(build_model(), folder)
