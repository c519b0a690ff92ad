"""Tell a machine's states from windows of three sensors; keep a smoothed copy of the weights."""

import sys

import torch
from torch import nn

SENSORS, SAMPLES, STATES = 3, 32, 4
CENTRE = [12.0, -3.5, 140.0]  # from the sensors' data sheets
SCALE = [4.0, 0.25, 30.0]


class Classifier(nn.Module):
    """Scores (windows, STATES) for raw windows (windows, SAMPLES, SENSORS)."""

    def __init__(self):
        super().__init__()
        self.centre = torch.tensor(CENTRE)
        self.scale = torch.tensor(SCALE)
        self.hidden = nn.Linear(SAMPLES * SENSORS, 32)
        self.scores = nn.Linear(32, STATES)

    def _apply(self, fn, *args, **kwargs):
        super()._apply(fn, *args, **kwargs)
        self.centre, self.scale = fn(self.centre), fn(self.scale)
        return self

    def forward(self, windows):
        x = (windows - self.centre) / self.scale
        return self.scores(torch.relu(self.hidden(x.flatten(1))))


class Smoothed:
    """A running average of a model's weights, for use in production."""

    def __init__(self, model, keep=0.9):
        self.keep = keep
        self.weights = {name: w.detach().clone() for name, w in model.named_parameters()}

    def update(self, model):
        for name, weight in model.named_parameters():
            self.weights[name].lerp_(weight.detach(), 1 - self.keep)


def make_windows(count, seed):
    """Raw windows and the state of each; state 0 is by far the most frequent."""
    generator = torch.Generator().manual_seed(seed)
    states = torch.multinomial(torch.tensor([0.7, 0.1, 0.1, 0.1]), count, True, generator=generator)
    clock = torch.linspace(0, 6.28, SAMPLES)
    waves = torch.sin((states[:, None] + 1) * clock)[..., None]
    noise = 0.5 * torch.randn(count, SAMPLES, SENSORS, generator=generator)
    return (waves + noise) * torch.tensor(SCALE) + torch.tensor(CENTRE), states


def state_weights(states):
    """The loss's weight of every state: rare states count more."""
    counts = torch.bincount(states, minlength=STATES)
    return len(states) / (STATES * counts.clamp(min=1))


def load(path="pretrained.pt"):
    """A classifier with the weights of a checkpoint, on the CPU."""
    model = Classifier()
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return model


def train(device, path="pretrained.pt", steps=40, seed=0):
    """Train from a checkpoint on `device`; return the model, the smoothed weights, the losses."""
    windows, states = make_windows(64 * steps, seed)
    model = load(path)
    criterion = nn.CrossEntropyLoss(weight=state_weights(states))
    model.to(device)
    criterion.to(device)
    smoothed = Smoothed(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for batch, wanted in zip(windows.split(64), states.split(64)):
        batch, wanted = batch.to(device), wanted.to(device)
        loss = criterion(model(batch), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        smoothed.update(model)
        losses.append(loss.item())
    return model, smoothed, losses


def main(device="cuda"):
    _, _, losses = train(device)
    print(f"{len(losses)} steps on {device}: loss {losses[0]:.3f}, at the end {losses[-1]:.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
