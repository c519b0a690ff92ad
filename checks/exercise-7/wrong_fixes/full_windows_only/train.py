"""Predict the yield of wafers from their sensor traces, a few at a time: the traces are large."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SENSORS = 24
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_wafers(count, seed):
    """Traces of `count` wafers, and the yield of each."""
    generator = torch.Generator().manual_seed(seed)
    plant = torch.Generator().manual_seed(5)
    influence = torch.randn(SENSORS, 3, generator=plant)
    traces = torch.randn(count, SENSORS, generator=generator)
    yields = torch.tanh(traces @ influence / 3).sum(dim=1)
    yields[-8:] += 3.0  # the latest wafers come from the new furnace
    return TensorDataset(traces, yields)


def build_model():
    model = nn.Sequential(nn.Linear(SENSORS, 64), nn.Tanh(), nn.Linear(64, 1), nn.Flatten(0))
    return model.to(DEVICE)


def batch_loss(model, traces, yields):
    """Mean squared error over the wafers of a batch."""
    return nn.functional.mse_loss(model(traces.to(DEVICE)), yields.to(DEVICE))


def train_epoch(model, optimizer, loader, accumulate=1):
    """Go once over the loader, one step for every `accumulate` batches; returns the mean loss."""
    total, wafers = 0.0, 0
    for number, (traces, yields) in enumerate(loader, start=1):
        loss = batch_loss(model, traces, yields)
        (loss / accumulate).backward()
        if number % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
        total += loss.item() * len(traces)
        wafers += len(traces)
    return total / wafers


def main():
    wafers = make_wafers(232, seed=0)
    for batch, accumulate in ((64, 1), (16, 4)):
        torch.manual_seed(0)
        model = build_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        loader = DataLoader(wafers, batch_size=batch)
        for epoch in range(1, 21):
            loss = train_epoch(model, optimizer, loader, accumulate)
            if epoch in (1, 5, 20):
                print(f"{accumulate} x {batch} wafers, epoch {epoch:2}: loss {loss:.4f}")


if __name__ == "__main__":
    main()
