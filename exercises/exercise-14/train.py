"""Estimate the wear of a bearing from a window of vibration, and export the model for the field."""

import torch
from torch import nn
from torch.nn import functional as F

AXES, FEATURES = 3, 16


class Gauge(nn.Module):
    """A leaky memory of the window, read by one head while the machine runs, by another in idling."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(AXES, FEATURES)
        self.keep = nn.Parameter(torch.full((FEATURES,), 2.0))
        self.running = nn.Linear(FEATURES, 1)
        self.idling = nn.Linear(FEATURES, 1)
        self.quiet = 0.2

    def forward(self, window):
        """From (time, axes) to the wear, (1,)."""
        features = torch.tanh(self.encoder(window))
        keep = torch.sigmoid(self.keep)
        memory = torch.zeros_like(self.keep)
        for step in range(window.shape[0]):
            memory = keep * memory + (1 - keep) * features[step]
        if window.abs().mean() < self.quiet:
            return self.idling(memory)
        return self.running(memory)


def build_model():
    return Gauge()


def make_window(generator, length, idling):
    """A window in which the wear shows more and more; the machine idles at a tenth of its strength."""
    wear = torch.rand(1, generator=generator)
    rise = torch.linspace(0, 2, length).unsqueeze(1)
    noise = torch.randn(length, AXES, generator=generator)
    return (0.1 if idling else 1.0) * (wear * rise + 0.5 * noise), wear


def train(model, steps=300, seed=1):
    """Windows of many lengths, one at a time."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(steps):
        length = int(torch.randint(16, 97, (1,), generator=generator))
        window, wear = make_window(generator, length, idling=step % 2 == 1)
        optimizer.zero_grad()
        F.mse_loss(model(window), wear).backward()
        optimizer.step()


def export(model, path):
    """Write the file that goes to the machines in the field."""
    example = torch.randn(48, AXES)
    torch.jit.trace(model.eval(), example).save(str(path))


def main():
    torch.manual_seed(0)
    model = build_model()
    train(model)
    export(model, "gauge.pt")
    field = torch.jit.load("gauge.pt")
    generator = torch.Generator().manual_seed(2)
    print("readings  machine   wear   model    file")
    for length, idling in ((48, False), (90, False), (48, True), (90, True)):
        window, wear = make_window(generator, length, idling)
        with torch.no_grad():
            answers = model(window).item(), field(window).item()
        state = "idling" if idling else "running"
        print(f"{length:8}  {state:8} {wear.item():5.2f}  {answers[0]:6.2f}  {answers[1]:6.2f}")


if __name__ == "__main__":
    main()
