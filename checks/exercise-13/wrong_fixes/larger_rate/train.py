"""Predict how much a spindle heats up and how far it moves, in half precision."""

import torch
from torch import nn
from torch.nn import functional as F

READINGS, HIDDEN = 4, 16
BATCH, BATCHES, EPOCHS = 8192, 4, 12
RATE, MAX_NORM = 2.0, 1.0
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_batches(seed=0):
    """Readings, and what they cause: a rise in temperature (K) and a displacement (m)."""
    generator = torch.Generator().manual_seed(seed)
    heat, push = torch.randn(READINGS, 2, generator=generator).unbind(dim=1)
    batches = []
    for _ in range(BATCHES):
        readings = torch.randn(BATCH, READINGS, generator=generator)
        rise = 2 * torch.tanh(readings @ heat)
        displacement = 1e-5 * torch.tanh(readings @ push)
        targets = torch.stack([rise, displacement], dim=1)
        batches.append((readings.to(DEVICE), targets.to(DEVICE)))
    return batches


class Spindle(nn.Module):
    """Two linear layers; the second begins at zero."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(READINGS, HIDDEN)
        self.head = nn.Linear(HIDDEN, 2)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, readings):
        return self.head(torch.tanh(self.encoder(readings)))


def build_model():
    return Spindle().to(DEVICE)


def train(model, batches):
    """One step of gradient descent a batch, each on a gradient of norm MAX_NORM at most."""
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    for readings, targets in batches:
        with torch.autocast(DEVICE.type, dtype=torch.float16):
            predicted = model(readings)
        loss = F.mse_loss(predicted.float(), targets)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()


def errors(model, batches):
    """Root mean square errors over all batches, in full precision: K and m."""
    with torch.no_grad():
        squares = [
            (model(readings) - targets).square().mean(dim=0) for readings, targets in batches
        ]
    return torch.stack(squares).mean(dim=0).sqrt().tolist()


def main():
    torch.manual_seed(0)
    batches = make_batches()
    model = build_model()
    for epoch in range(EPOCHS + 1):
        if epoch % 4 == 0:
            rise, displacement = errors(model, batches)
            print(f"epoch {epoch:2}: off by {rise:.3f} K and {displacement * 1e6:.2f} micrometres")
        train(model, batches)


if __name__ == "__main__":
    main()
