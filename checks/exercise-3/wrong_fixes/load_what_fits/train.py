"""Sort support tickets into queues, and answer from a model restored from its checkpoint."""

import sys
from pathlib import Path

import torch
from torch import nn

WORDS, QUEUES, LENGTH = 96, 6, 16
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Residual(nn.Module):
    """Adds to the input what a module makes of it."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return x + self.module(x)


class Sorter(nn.Module):
    """Scores (tickets, queues) for tickets of word numbers (tickets, words)."""

    def __init__(self, width=16):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width)
        self.blocks = nn.Sequential(
            *[Residual(nn.Sequential(nn.Linear(width, width), nn.Tanh())) for _ in range(2)]
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, QUEUES)

    def forward(self, tickets):
        return self.head(self.norm(self.blocks(self.embedding(tickets).mean(dim=1))))


def make_tickets(count, seed):
    """Tickets and their queues; half the words of a ticket are typical of its queue."""
    generator = torch.Generator().manual_seed(seed)
    queues = torch.randint(QUEUES, (count,), generator=generator)
    tickets = torch.randint(WORDS, (count, LENGTH), generator=generator)
    tickets[:, ::2] = tickets[:, ::2] // QUEUES * QUEUES + queues[:, None]
    return tickets, queues


def accuracy(model, tickets, queues):
    with torch.no_grad():
        answers = model(tickets.to(DEVICE)).argmax(dim=1).cpu()
    return (answers == queues).float().mean().item()


def train(epochs=12):
    """Train on every GPU there is."""
    torch.manual_seed(0)
    model = nn.DataParallel(Sorter().to(DEVICE))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    tickets, queues = make_tickets(2048, seed=1)
    for _ in range(epochs):
        for batch, wanted in zip(tickets.split(128), queues.split(128)):
            loss = nn.functional.cross_entropy(model(batch.to(DEVICE)), wanted.to(DEVICE))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


def save(model, path):
    torch.save({"model": model.state_dict(), "words": WORDS, "queues": QUEUES}, path)


def restore(path):
    """The model of a checkpoint file, on DEVICE and ready to answer."""
    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    prefix = "module."
    weights = checkpoint["model"]
    if all(name.startswith(prefix) for name in weights):
        weights = {name[len(prefix) :]: value for name, value in weights.items()}
    model = Sorter()
    own = model.state_dict()
    for name, value in weights.items():
        if name in own and own[name].shape == value.shape:
            own[name] = value
    model.load_state_dict(own)
    return model.to(DEVICE).eval()


def main(path=None):
    tickets, queues = make_tickets(1000, seed=2)
    if path is None:
        path = Path("checkpoint.pt")
        model = train()
        print(f"accuracy after training: {accuracy(model, tickets, queues):.2f}")
        save(model, path)
    print(f"accuracy of {path}: {accuracy(restore(path), tickets, queues):.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
