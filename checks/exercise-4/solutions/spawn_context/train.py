"""Classify vibration records by their dominant frequency."""

import json
import os
import statistics
import threading
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES, SAMPLES = 4, 16384
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def write_records(folder, count=64, seed=0):
    """Write `count` records; record n is a noisy sine of class n % CLASSES."""
    folder.mkdir(exist_ok=True)
    generator = torch.Generator().manual_seed(seed)
    clock = torch.linspace(0, 1, SAMPLES)
    for n in range(count):
        label = n % CLASSES
        noise = 6 * torch.randn(SAMPLES, generator=generator)
        signal = torch.sin(2 * torch.pi * (40 + 60 * label) * clock) + noise
        signal = [round(value, 4) for value in signal.tolist()]
        record = {"id": f"{seed}-{n:03}", "label": label, "signal": signal}
        (folder / f"{n:03}.json").write_text(json.dumps(record))


def read_record(path):
    return json.loads(path.read_text())


class ClipLimit:
    """The amplitude at which signals are clipped: the median of the records' peaks.

    Records are replaced while training goes on, so the limit is computed anew beside every epoch.
    """

    def __init__(self, folder):
        self.paths = sorted(folder.glob("*.json"))
        self.lock = threading.Lock()
        self.value = 20.0

    def current(self):
        with self.lock:
            return self.value

    def __getstate__(self):
        state = self.__dict__.copy()
        del state["lock"]
        return state

    def __setstate__(self, state):
        self.__dict__.update(state, lock=threading.Lock())

    def start_refresh(self, epoch):
        """Start a refresh in the background; return its thread as soon as it is under way."""
        under_way = threading.Event()
        thread = threading.Thread(target=self.refresh, args=(epoch, under_way), daemon=True)
        thread.start()
        under_way.wait()
        return thread

    def refresh(self, epoch, under_way):
        with self.lock:
            print(f"clip limit: refresh {epoch} under way", flush=True)
            under_way.set()
            peaks = []
            for path in self.paths:
                peaks.append(max(map(abs, read_record(path)["signal"])))
                time.sleep(0.03)  # leave the disks to the loader
            self.value = statistics.median(peaks)
            print(f"clip limit: refresh {epoch} done, {self.value:.4f}", flush=True)


class Records(Dataset):
    def __init__(self, folder, limit):
        self.paths = sorted(folder.glob("*.json"))
        self.limit = limit

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        record = read_record(self.paths[index])
        limit = self.limit.current()
        signal = torch.tensor(record["signal"]).clamp(-limit, limit)
        spectrum = torch.fft.rfft(signal).abs()[:512]
        return spectrum, record["label"], record["id"], os.getpid()


def train(records, epochs=2):
    """Train on the records in a folder; return, for every epoch, the (id, process) of each sample."""
    torch.manual_seed(0)
    limit = ClipLimit(records)
    loader = DataLoader(
        Records(records, limit),
        batch_size=8,
        shuffle=True,
        num_workers=2,
        multiprocessing_context="spawn",
        persistent_workers=True,
    )
    model = nn.Sequential(nn.LayerNorm(512), nn.Linear(512, CLASSES)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    audit = []
    for epoch in range(1, epochs + 1):
        refresh = limit.start_refresh(epoch)
        seen = []
        for spectra, labels, names, processes in loader:
            loss = nn.functional.cross_entropy(model(spectra.to(DEVICE)), labels.to(DEVICE))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen.extend(zip(names, processes.tolist()))
        audit.append(seen)
        print(f"epoch {epoch}: {len(seen)} samples, loss {loss.item():.3f}", flush=True)
    refresh.join()
    return audit


if __name__ == "__main__":
    folder = Path("records")
    write_records(folder)
    train(folder)
