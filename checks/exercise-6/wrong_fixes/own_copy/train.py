"""Train a head for the new production line on the backbone that the old line uses too."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

SENSORS, KINDS = 16, 4
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_line(count, seed, drift=0.0):
    """Readings of `count` parts and the kind of each; `drift` is how far the line's sensors are off."""
    generator = torch.Generator().manual_seed(seed)
    plant = torch.Generator().manual_seed(7)
    centres = torch.randn(KINDS, SENSORS, generator=plant)
    offset = torch.randn(SENSORS, generator=plant)
    kinds = torch.randint(KINDS, (count,), generator=generator)
    readings = centres[kinds] + 1.5 * torch.randn(count, SENSORS, generator=generator)
    return (readings + drift * offset).to(DEVICE), kinds.to(DEVICE)


def build_backbone():
    return nn.Sequential(
        nn.Linear(SENSORS, 64),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.Linear(64, 32),
        nn.BatchNorm1d(32),
        nn.ReLU(),
    )


class Classifier(nn.Module):
    """The backbone that all lines share, and one line's own head."""

    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Sequential(
            nn.Linear(32, 128),
            nn.BatchNorm1d(128),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(128, KINDS),
        )

    def forward(self, readings):
        return self.head(self.backbone(readings))


def train_old_line():
    """The classifier of the old line, backbone and head."""
    model = Classifier(build_backbone()).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    readings, kinds = make_line(512, seed=1)
    for _ in range(60):
        loss = F.cross_entropy(model(readings), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def build_model(backbone):
    """A classifier with a new head on a backbone that is frozen."""
    model = Classifier(copy.deepcopy(backbone)).to(DEVICE)
    for weight in model.backbone.parameters():
        weight.requires_grad_(False)
    model.backbone.eval()
    return model


def evaluate(model, readings, kinds):
    """Loss, and the share of parts that are recognised."""
    model.eval()
    with torch.no_grad():
        logits = model(readings)
        loss = F.cross_entropy(logits, kinds)
    return loss.item(), (logits.argmax(dim=1) == kinds).float().mean().item()


def fine_tune(model, optimizer, data, held_out, epochs, every, batch=16):
    """Train; evaluate on the held-out parts after every `every` steps. Returns both histories."""
    readings, kinds = data
    losses, evaluations = [], []
    for _ in range(epochs):
        model.train()
        for start in range(0, len(readings), batch):
            chosen = slice(start, start + batch)
            loss = F.cross_entropy(model(readings[chosen]), kinds[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if len(losses) % every == 0:
                evaluations.append(evaluate(model, *held_out))
                model.train()
    return losses, evaluations


def main():
    data, held_out = make_line(128, seed=3, drift=2.0), make_line(512, seed=4, drift=2.0)
    old_parts = make_line(512, seed=2)
    for every in (2, 8):
        torch.manual_seed(0)
        old_line = train_old_line()
        _, before = evaluate(old_line, *old_parts)
        model = build_model(old_line.backbone)
        optimizer = torch.optim.Adam(model.head.parameters(), lr=1e-2)
        _, evaluations = fine_tune(model, optimizer, data, held_out, epochs=20, every=every)
        _, after = evaluate(old_line, *old_parts)
        print(f"evaluated every {every} steps: new line's held-out loss {evaluations[-1][0]:.3f}")
        print(f"    old line: {before:.1%} correct before, {after:.1%} after")


if __name__ == "__main__":
    main()
