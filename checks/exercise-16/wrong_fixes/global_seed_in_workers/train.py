"""Tell the pulses of two machines apart; each pulse is shown with a random gain and offset."""

import os
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LENGTH = 32
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_pulses(count=64, seed=0):
    """Pulses (count, LENGTH), and for each the machine, 0 or 1, that it came from."""
    generator = torch.Generator().manual_seed(seed)
    clock = torch.linspace(0, 6, LENGTH)
    machines = torch.arange(count) % 2
    shapes = torch.stack([torch.sin(clock), torch.sin(1.3 * clock)])
    return shapes[machines] + 0.5 * torch.randn(count, LENGTH, generator=generator), machines


class Pulses(Dataset):
    """Pulses, each with a gain and an offset that are drawn whenever it is shown."""

    def __init__(self, pulses, machines, seed):
        self.pulses = pulses
        self.machines = machines
        self.random = random.Random(seed)

    def __len__(self):
        return len(self.pulses)

    def __getitem__(self, number):
        gain = self.random.uniform(0.5, 1.5)
        offset = self.random.uniform(-1, 1)
        view = gain * self.pulses[number] + offset
        return number, os.getpid(), gain, view, self.machines[number]


def seed_copy(worker):
    random.seed(torch.initial_seed())


def train(pulses, machines, seed=0, epochs=3):
    """Train a classifier; return, for every epoch, what was shown, in order.

    An epoch is a dictionary of tensors: `numbers` of the pulses, `processes` that made the views,
    and the `views` themselves, one a row.
    """
    torch.manual_seed(seed)
    loader = DataLoader(
        Pulses(pulses, machines, seed),
        batch_size=8,
        shuffle=True,
        num_workers=2,
        worker_init_fn=seed_copy,
    )
    model = nn.Sequential(nn.Linear(LENGTH, 32), nn.ReLU(), nn.Linear(32, 2)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    shown, known = [], set()
    for epoch in range(1, epochs + 1):
        batches = []
        for numbers, processes, gains, views, targets in loader:
            loss = nn.functional.cross_entropy(model(views.to(DEVICE)), targets.to(DEVICE))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            batches.append((numbers, processes, gains, views))
        numbers, processes, gains, views = (torch.cat(column) for column in zip(*batches))
        shown.append({"numbers": numbers, "processes": processes, "views": views})
        new = set(gains.tolist()) - known
        known |= new
        print(f"epoch {epoch}: {len(views)} pulses shown, {len(new)} gains not seen before")
    return shown


if __name__ == "__main__":
    train(*make_pulses())
