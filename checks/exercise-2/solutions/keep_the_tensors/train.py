"""Classify machine states from twelve sensors, and rebuild the readings from the same code."""

import torch
from torch import nn
from torch.nn import functional as F

SENSORS, STATES = 12, 4
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_data(count=2048, seed=0):
    """Readings of two rotating parts; the state is the quarter in which their angles add up."""
    generator = torch.Generator().manual_seed(seed)
    angles = 2 * torch.pi * torch.rand(count, 2, generator=generator)
    states = (angles.sum(dim=1) / (torch.pi / 2)).long() % STATES
    mixing = torch.randn(4, SENSORS, generator=torch.Generator().manual_seed(1))
    signal = torch.cat([angles.sin(), angles.cos()], dim=1)
    readings = signal @ mixing + 0.1 * torch.randn(count, SENSORS, generator=generator)
    return readings.to(DEVICE), states.to(DEVICE)


class Monitor(nn.Module):
    """Encoder and summary feed the head; the decoder rebuilds the readings."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(SENSORS, 64), nn.Tanh())
        self.summary = nn.Sequential(nn.Linear(64, 16), nn.Tanh())
        self.head = nn.Linear(16, STATES)
        self.decoder = nn.Linear(64, SENSORS)
        self.last_summary = None

    def forward(self, readings):
        hidden = self.encoder(readings)
        summary = self.summary(hidden)
        self.last_summary = summary.detach()  # for the plots
        return self.head(summary), self.decoder(hidden)


def build_model():
    return Monitor().to(DEVICE)


def rebuild_loss(rebuilt, readings):
    """Mean over the sensors of each sensor's squared error."""
    errors = [F.mse_loss(rebuilt[:, n], readings[:, n]) for n in range(SENSORS)]
    return torch.stack(errors).mean()


def training_loss(model, readings, states):
    """Cross-entropy of the states plus half the error of the rebuilt readings."""
    logits, rebuilt = model(readings)
    return F.cross_entropy(logits, states) + 0.5 * rebuild_loss(rebuilt, readings)


def train_epoch(model, optimizer, readings, states, batch=128):
    """One pass over the data; returns the mean loss."""
    total = 0.0
    for start in range(0, len(readings), batch):
        chosen = slice(start, start + batch)
        loss = training_loss(model, readings[chosen], states[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(readings[chosen])
    return total / len(readings)


def main():
    torch.manual_seed(0)
    readings, states = make_data()
    model = build_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(1, 31):
        loss = train_epoch(model, optimizer, readings, states)
        if epoch % 5 == 0:
            with torch.no_grad():
                logits, rebuilt = model(readings)
            correct = (logits.argmax(1) == states).float().mean().item()
            error = F.mse_loss(rebuilt, readings).item()
            print(
                f"epoch {epoch:2}: loss {loss:.3f}, correct {correct:.1%}, rebuild error {error:.3f}"
            )


if __name__ == "__main__":
    main()
