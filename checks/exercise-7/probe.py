"""Runs inside the attempt: the gradient at every step, small batches against whole windows."""

from __future__ import annotations

import zlib
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 2


class Recorder(torch.optim.SGD):
    """Keeps the gradient of each step; a step without any gradient is none."""

    def __init__(self, model: Any) -> None:
        super().__init__(model.parameters(), lr=0.05, momentum=0.9)
        self.weights = list(model.parameters())
        self.seen: list[torch.Tensor] = []

    def step(self, closure: Any = None) -> Any:
        """As SGD does."""
        if any(weight.grad is not None for weight in self.weights):
            self.seen.append(flat(self.weights))
        return super().step(closure)


class Kept:
    """Counts the bytes that forward passes keep for backward, and their peak."""

    def __init__(self) -> None:
        self.now = self.peak = 0

    def watch(self) -> Any:
        """A context in which it counts."""
        return torch.autograd.graph.saved_tensors_hooks(lambda kept: Slip(self, kept), Slip.give)


class Slip:
    """One tensor that is kept for backward; gone when autograd lets go of it."""

    def __init__(self, owner: Kept, kept: torch.Tensor) -> None:
        self.owner, self.kept = owner, kept
        self.size = kept.numel() * kept.element_size()
        owner.now += self.size
        owner.peak = max(owner.peak, owner.now)

    def __del__(self) -> None:
        self.owner.now -= self.size

    def give(self) -> torch.Tensor:
        """The tensor, for backward."""
        return self.kept


def small_batches(
    script: Any, seed: int, traces: torch.Tensor, yields: torch.Tensor, batch: int, accumulate: int
) -> dict[str, Any]:
    """What `train_epoch` does, `accumulate` batches to a step."""
    model = build(script, seed)
    optimizer, kept = Recorder(model), Kept()
    loader = DataLoader(TensorDataset(traces, yields), batch_size=batch)
    with kept.watch():
        losses = [
            float(script.train_epoch(model, optimizer, loader, accumulate)) for _ in range(EPOCHS)
        ]
    return {"gradients": optimizer.seen, "losses": losses, "kept": kept.peak}


def whole_windows(
    script: Any, seed: int, traces: torch.Tensor, yields: torch.Tensor, batch: int, accumulate: int
) -> dict[str, Any]:
    """What large batches do: one backward for each window; `kept` is what one small batch keeps."""
    model = build(script, seed)
    optimizer, kept, losses = Recorder(model), Kept(), []
    with kept.watch():
        script.batch_loss(model, traces[:batch], yields[:batch]).backward()
    for _ in range(EPOCHS):
        total = 0.0
        for window in torch.arange(len(traces)).split(batch * accumulate):
            optimizer.zero_grad()
            loss = script.batch_loss(model, traces[window], yields[window])
            loss.backward()
            optimizer.step()
            total += float(loss.detach()) * len(window)
        losses.append(total / len(traces))
    return {"gradients": optimizer.seen, "losses": losses, "kept": kept.peak}


def flat(weights: list[Any]) -> torch.Tensor:
    """All gradients in one row, 0 where there is none."""
    parts = [torch.zeros_like(w) if w.grad is None else w.grad for w in weights]
    return torch.cat([part.detach().flatten() for part in parts]).clone()


def build(script: Any, seed: int) -> Any:
    """A model whose weights are drawn, each for its name."""
    model = script.build_model()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            generator = torch.Generator().manual_seed(seed + zlib.crc32(name.encode()))
            weight.copy_(0.3 * torch.randn(weight.shape, generator=generator))
    return model
