"""Label every step of a lorry's trip with one of four driving states."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

SENSORS, STATES, WIDTH, BATCH = 4, 4, 32, 32
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_trips(count=128, seed=0):
    """Readings (steps, SENSORS) and states (steps,) of each trip; most trips are short.

    A state says which of two signals is above what is usual for this lorry and load.
    """
    generator = torch.Generator().manual_seed(seed)
    mixing = torch.randn(2, SENSORS, generator=torch.Generator().manual_seed(1))
    trips, states = [], []
    for _ in range(count):
        steps = 5 + int(60 * torch.rand(1, generator=generator) ** 3)
        usual = 2 * torch.randn(2, generator=generator)
        signals = torch.randn(steps, 2, generator=generator)
        noise = 0.1 * torch.randn(steps, SENSORS, generator=generator)
        trips.append(((usual + signals) @ mixing + noise).to(DEVICE))
        states.append(((signals > 0).long() @ torch.tensor([1, 2])).to(DEVICE))
    return trips, states


class Tagger(nn.Module):
    """Every step is judged by its own readings and by what it finds in the rest of the trip."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(SENSORS, WIDTH)
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Sequential(nn.Linear(2 * WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, STATES))

    def forward(self, readings):
        """Scores (trips, steps, STATES) of readings (trips, steps, SENSORS)."""
        encoded = torch.tanh(self.encoder(readings))
        fit = self.query(encoded) @ self.key(encoded).transpose(1, 2) / WIDTH**0.5
        found = fit.softmax(dim=-1) @ self.value(encoded)
        return self.head(torch.cat([encoded, found], dim=-1))


def build_model():
    return Tagger().to(DEVICE)


def predict(model, trips):
    """The scores of each trip, a list of tensors (steps, STATES)."""
    return [model(trip.unsqueeze(0))[0] for trip in trips]


def training_loss(model, trips, states):
    """The cross-entropy of all steps of all trips, on average."""
    return F.cross_entropy(torch.cat(predict(model, trips)), torch.cat(states))


def train_epoch(model, optimizer, trips, states):
    """One pass over the trips, a step of the optimizer for each batch."""
    for start in range(0, len(trips), BATCH):
        loss = training_loss(model, trips[start : start + BATCH], states[start : start + BATCH])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def evaluate(model, trips, states, batch):
    """Mean loss of a step and share of right labels, the trips taken `batch` at a time."""
    steps = sum(map(len, trips))
    loss = right = 0.0
    for start in range(0, len(trips), batch):
        some, wanted = trips[start : start + batch], states[start : start + batch]
        loss += training_loss(model, some, wanted).item() * sum(map(len, some))
        for scores, state in zip(predict(model, some), wanted):
            right += (scores.argmax(1) == state).sum().item()
    return loss / steps, right / steps


def main():
    torch.manual_seed(0)
    trips, states = make_trips()
    model = build_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(40):
        train_epoch(model, optimizer, trips, states)
    for batch in (1, 8, 64):
        loss, right = evaluate(model, trips, states, batch)
        print(f"the same trips, {batch:2} at a time: loss {loss:.3f}, correct {right:.1%}")


if __name__ == "__main__":
    main()
