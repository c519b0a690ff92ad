"""Tell the grade and the moisture of timber boards from laser measurements."""

from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

MEASURES, GRADES, WIDTH = 12, 3, 32
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_boards(count, seed):
    """Measurements of `count` boards, each in its own unit, and the boards' grades and moistures."""
    generator = torch.Generator().manual_seed(seed)
    mill = torch.Generator().manual_seed(3)
    knots = torch.rand(count, 2, generator=generator)
    grades = (knots.sum(dim=1) * GRADES).long() % GRADES
    moistures = torch.sin(6 * knots[:, 0]) * knots[:, 1]
    signal = torch.cat([knots, (6 * knots).sin(), (6 * knots).cos()], dim=1)
    measured = signal @ torch.randn(6, MEASURES, generator=mill)
    measured += 0.1 * torch.randn(count, MEASURES, generator=generator)
    units = 3 * torch.rand(MEASURES, generator=mill) + 0.2
    boards = units * measured + 5 * units, grades, moistures
    return [part.to(DEVICE) for part in boards]


class Grader(nn.Module):
    """A trunk of several layers on adjusted measurements, and a head for each question."""

    def __init__(self, depth=3):
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(MEASURES))
        self.scale = nn.Parameter(torch.ones(MEASURES))
        self.entry = nn.Linear(MEASURES, WIDTH)
        self.layers = [nn.Linear(WIDTH, WIDTH).to(DEVICE) for _ in range(depth)]
        self.heads = {
            "grade": nn.Linear(WIDTH, GRADES).to(DEVICE),
            "moisture": nn.Linear(WIDTH, 1).to(DEVICE),
        }

    def adjust(self, measured):
        """Start with measurements of mean 0 and deviation 1; training may improve on it."""
        self.offset = nn.Parameter(measured.mean(dim=0))
        self.scale = nn.Parameter(1 / measured.std(dim=0))

    def forward(self, measured):
        hidden = torch.tanh(self.entry((measured - self.offset) * self.scale))
        for layer in self.layers:
            hidden = hidden + torch.tanh(layer.to(hidden)(hidden))
        return {question: head.to(hidden)(hidden) for question, head in self.heads.items()}


def start(measured):
    """A model that is adjusted to the measurements, and its optimizer."""
    model = Grader().to(DEVICE)
    model.adjust(measured)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    return model, optimizer


def training_loss(model, measured, grades, moistures):
    """Cross-entropy of the grades plus the mean squared error of the moistures."""
    answers = model(measured)
    error = F.mse_loss(answers["moisture"].squeeze(1), moistures)
    return F.cross_entropy(answers["grade"], grades) + error


def train_epoch(model, optimizer, measured, grades, moistures, batch=64):
    """One pass over the boards; returns the loss of the last batch."""
    for start_at in range(0, len(measured), batch):
        chosen = slice(start_at, start_at + batch)
        loss = training_loss(model, measured[chosen], grades[chosen], moistures[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def report(title, model, measured, grades, moistures):
    with torch.no_grad():
        answers = model(measured)
    correct = (answers["grade"].argmax(dim=1) == grades).float().mean().item()
    error = F.mse_loss(answers["moisture"].squeeze(1), moistures).item()
    print(f"{title}: grades {correct:.1%} correct, moisture error {error:.3f}")


def main():
    torch.manual_seed(0)
    boards = make_boards(1024, seed=0)
    model, optimizer = start(boards[0])
    for epoch in range(1, 31):
        train_epoch(model, optimizer, *boards)
        if epoch % 10 == 0:
            report(f"epoch {epoch}", model, *boards)
    torch.save(model.state_dict(), Path("grader.pt"))
    loaded, _ = start(boards[0])
    loaded.load_state_dict(torch.load(Path("grader.pt")))
    report("loaded again", loaded, *boards)


if __name__ == "__main__":
    main()
