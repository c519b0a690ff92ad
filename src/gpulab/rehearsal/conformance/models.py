"""Five small models of real kinds, trained on the device to the CPU's losses."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.testing import assert_close

from gpulab.rehearsal.conformance.finding import Finding, one_line

STEPS = 5
BATCH = 16
CLASSES = 5


class ResidualNet(nn.Module):  # type: ignore[misc] # torch is untyped here
    """Convolutions, batch norm, a skip connection."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.norms = nn.ModuleList(nn.BatchNorm2d(8) for _ in range(3))
        self.convs = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=1) for _ in range(2))
        self.head = nn.Linear(8, CLASSES)

    def forward(self, images: Any) -> Any:
        """Images (batch x 3 x 12 x 12) to logits."""
        hidden = functional.relu(self.norms[0](self.stem(images)))
        skip = hidden
        for conv, norm in zip(self.convs, list(self.norms)[1:], strict=True):
            hidden = functional.relu(norm(conv(hidden)))
        return self.head(functional.max_pool2d(hidden + skip, 2).mean((2, 3)))


class Tagger(nn.Module):  # type: ignore[misc] # as above
    """A bidirectional LSTM that labels every token."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.lstm = nn.LSTM(8, 12, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(24, CLASSES)

    def forward(self, tokens: Any) -> Any:
        """Tokens (batch x 7) to logits of every token."""
        return self.head(self.lstm(self.embed(tokens))[0]).flatten(0, 1)


class Encoder(nn.Module):  # type: ignore[misc] # as above
    """A transformer encoder with a padding mask."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, tokens: Any) -> Any:
        """Tokens (batch x 7) to logits."""
        padding = tokens == 0
        return self.head(self.encoder(self.embed(tokens), src_key_padding_mask=padding).mean(1))


class Recommender(nn.Module):  # type: ignore[misc] # as above
    """User and item embeddings, a bag of tags, a small head."""

    def __init__(self) -> None:
        super().__init__()
        self.users = nn.Embedding(50, 8)
        self.items = nn.Embedding(50, 8)
        self.tags = nn.EmbeddingBag(50, 8)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, tokens: Any) -> Any:
        """Tokens (batch x 7), the first two a user and an item, to logits."""
        pair = self.users(tokens[:, 0]) * self.items(tokens[:, 1])
        return self.head(torch.cat([pair, self.tags(tokens[:, 2:])], 1))


def perceptron() -> nn.Module:
    """Return a plain MLP."""
    return nn.Sequential(
        nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 5)
    )


def vectors() -> torch.Tensor:
    """Return inputs of the MLP."""
    return torch.randn(BATCH, 20)


def images() -> torch.Tensor:
    """Return inputs of the residual net."""
    return torch.randn(BATCH, 3, 12, 12)


def tokens() -> torch.Tensor:
    """Return inputs of the models of sequences."""
    return torch.randint(0, 50, (BATCH, 7))


MODELS: dict[str, tuple[Callable[[], Any], Callable[[], Any], int]] = {
    "MLP": (perceptron, vectors, BATCH),
    "ResNet with BatchNorm": (ResidualNet, images, BATCH),
    "LSTM tagger": (Tagger, tokens, BATCH * 7),
    "transformer encoder": (Encoder, tokens, BATCH),
    "embedding recommender": (Recommender, tokens, BATCH),
}
OPTIMIZERS = {"SGD": torch.optim.SGD, "Adam": torch.optim.Adam, "AdamW": torch.optim.AdamW}


def losses(model_name: str, optimizer: str, device: str, **options: Any) -> list[float]:
    """Train for STEPS steps from a fixed seed; return the loss of every step."""
    make_model, make_inputs, labels = MODELS[model_name]
    torch.manual_seed(0)
    model, inputs = make_model(), make_inputs()
    targets = torch.randint(0, CLASSES, (labels,))
    model, inputs, targets = model.to(device), inputs.to(device), targets.to(device)
    optimise = OPTIMIZERS[optimizer](model.parameters(), lr=0.01, **options)
    found = []
    for _ in range(STEPS):
        optimise.zero_grad()
        loss = functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimise.step()
        found.append(loss.item())
    return found


def judge_all() -> Iterator[Finding]:
    """Judge every model with every optimizer, default and foreach."""
    for model, optimizer, foreach in itertools.product(MODELS, OPTIMIZERS, (False, True)):
        options = {"foreach": True} if foreach else {}
        name = f"{model}, {optimizer}{' foreach' if foreach else ''}"
        try:
            expected = losses(model, optimizer, "cpu", **options)
            observed = losses(model, optimizer, "cuda", **options)
            assert_close(observed, expected, rtol=1e-4, atol=1e-5)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this model's
            yield Finding("models", name, "wrong", one_line(error))
        else:
            yield Finding("models", name, "values")
