"""Tell from pulses whether a valve stands open, all along recordings too long to train on whole."""

import torch
from torch import nn
from torch.nn import functional as F

CHANNELS, HIDDEN, WINDOW = 3, 16, 25
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_recordings(count=64, steps=210, seed=0):
    """Readings (count, steps, CHANNELS), and whether the valve is open (count, steps), 0 or 1.

    A pulse in the first channel opens the valve, one in the second closes it; pulses are rare.
    """
    generator = torch.Generator().manual_seed(seed)
    pulses = (torch.rand(count, steps, CHANNELS, generator=generator) < 0.03).float()
    readings = pulses + 0.1 * torch.randn(count, steps, CHANNELS, generator=generator)
    now = (torch.rand(count, generator=generator) < 0.9).float()  # most begin with an open valve
    valve = []
    for step in range(steps):
        now = torch.maximum(now, pulses[:, step, 0]) * (1 - pulses[:, step, 1])
        valve.append(now)
    return readings.to(DEVICE), torch.stack(valve, dim=1).to(DEVICE)


class Tracker(nn.Module):
    """Reads step by step; its state begins with `start`, which is learnt."""

    def __init__(self):
        super().__init__()
        self.start = nn.Parameter(torch.zeros(2, HIDDEN))
        self.cell = nn.LSTMCell(CHANNELS, HIDDEN)
        self.head = nn.Linear(HIDDEN, 1)

    def begin(self, count):
        """The state, hidden and memory, in which `count` recordings begin."""
        hidden, memory = self.start
        return hidden.expand(count, -1), memory.expand(count, -1)

    def forward(self, readings, state):
        """Scores (count, steps) of readings (count, steps, CHANNELS), and the state at their end."""
        scores = []
        for reading in readings.unbind(dim=1):
            state = self.cell(reading, state)
            scores.append(self.head(state[0]).squeeze(1))
        return torch.stack(scores, dim=1), state


def build_model():
    return Tracker().to(DEVICE)


def train_epoch(model, optimizer, readings, valve):
    """One pass over the recordings, a window at a time; returns the windows' losses."""
    state = model.begin(len(readings))
    losses = []
    for begin in range(0, readings.shape[1], WINDOW):
        window = slice(begin, begin + WINDOW)
        begun = state
        scores, _ = model(readings[:, window], begun)
        loss = F.binary_cross_entropy_with_logits(scores, valve[:, window])
        with torch.no_grad():
            _, state = model(readings[:, window], begun)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    torch.manual_seed(0)
    readings, valve = make_recordings()
    model = build_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    for epoch in range(1, 17):
        losses = train_epoch(model, optimizer, readings, valve)
        if epoch % 4 == 0:
            with torch.no_grad():
                scores, _ = model(readings, model.begin(len(readings)))
            right = ((scores > 0) == (valve > 0)).float()
            print(
                f"epoch {epoch:2}: loss {sum(losses) / len(losses):.3f}, correct {right.mean():.1%},"
                f" in the first window {right[:, :WINDOW].mean():.1%}"
            )


if __name__ == "__main__":
    main()
