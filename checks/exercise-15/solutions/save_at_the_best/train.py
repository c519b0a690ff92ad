"""Tell worn bearings from sound ones, and keep what the best epoch has learnt."""

import io

import torch
from torch import nn
from torch.nn import functional as F

FEATURES, EPOCHS, BATCH = 20, 24, 32
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_data(count, seed):
    """Features of each bearing and whether it is worn; the inspectors err in one case of five."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(count, FEATURES, generator=generator)
    worn = features[:, 0] + features[:, 1] * features[:, 2] + features[:, 3] > 0
    mistaken = torch.rand(count, generator=generator) < 0.2
    return features, (worn ^ mistaken).long()


def build_model():
    return nn.Sequential(nn.Linear(FEATURES, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 2))


def build_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=2e-3)


def train_epoch(model, optimizer, features, labels):
    """One pass over the data in the order it has."""
    model.train()
    for start in range(0, len(features), BATCH):
        chosen = slice(start, start + BATCH)
        loss = F.cross_entropy(model(features[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluate(model, features, labels):
    """The mean loss over the data."""
    model.eval()
    with torch.no_grad():
        return F.cross_entropy(model(features), labels).item()


def fit(model, optimizer, training, validation, epochs):
    """Train for `epochs` epochs.

    Returns the checkpoint of the epoch with the lowest validation loss, and the validation loss
    after every epoch.
    """
    best, history = None, []
    for epoch in range(epochs):
        train_epoch(model, optimizer, *training)
        loss = evaluate(model, *validation)
        history.append(loss)
        if best is None or loss < best["loss"]:
            best = {"epoch": epoch, "loss": loss}
            saved = io.BytesIO()
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, saved)
    saved.seek(0)
    return {**best, **torch.load(saved)}, history


def restore(checkpoint):
    """A model and an optimizer as they were when the checkpoint was made."""
    model = build_model().to(DEVICE)
    model.load_state_dict(checkpoint["model"])
    optimizer = build_optimizer(model)
    optimizer.load_state_dict(checkpoint["optimizer"])
    return model, optimizer


def main():
    torch.manual_seed(0)
    training = [part.to(DEVICE) for part in make_data(256, seed=1)]
    validation = [part.to(DEVICE) for part in make_data(512, seed=2)]
    model = build_model().to(DEVICE)
    best, history = fit(model, build_optimizer(model), training, validation, EPOCHS)
    number = best["epoch"]
    print(f"last epoch, {EPOCHS}: validation loss {history[-1]:.3f}")
    print(f"best epoch, {number + 1}: validation loss {best['loss']:.3f}")

    model, optimizer = restore(best)
    print(f"checkpoint of epoch {number + 1}: validation loss {evaluate(model, *validation):.3f}")
    _, again = fit(model, optimizer, training, validation, 1)
    print(f"epoch {number + 2}: validation loss {history[number + 1]:.3f}, resumed {again[0]:.3f}")


if __name__ == "__main__":
    main()
