"""Runs inside the attempt: what a model learns from one batch."""

from __future__ import annotations

import zlib
from typing import Any

import torch

RATE = 0.5


def gradients(
    script: Any, seed: int, readings: torch.Tensor, states: torch.Tensor
) -> dict[str, Any]:
    """The loss on one batch, and the gradient of every parameter (None where it got none)."""
    model, readings, states = prepare(script, seed, readings, states)
    loss = script.training_loss(model, readings, states)
    loss.backward()
    return {
        "loss": float(loss.detach()),
        "gradients": {name: weight.grad for name, weight in model.named_parameters()},
    }


def changes(
    script: Any, seed: int, readings: torch.Tensor, states: torch.Tensor
) -> dict[str, torch.Tensor]:
    """How every parameter changes in an epoch of one batch under plain gradient descent."""
    model, readings, states = prepare(script, seed, readings, states)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    script.train_epoch(model, optimizer, readings, states)
    return {name: weight.detach() - before[name] for name, weight in model.named_parameters()}


def gradients_and_changes(
    script: Any, seed: int, readings: torch.Tensor, states: torch.Tensor
) -> dict[str, Any]:
    """Both, the changes beside the rest."""
    learnt = gradients(script, seed, readings, states)
    return {**learnt, "changes": changes(script, seed, readings, states)}


def prepare(
    script: Any, seed: int, readings: torch.Tensor, states: torch.Tensor
) -> tuple[Any, torch.Tensor, torch.Tensor]:
    """A model with fresh weights, each drawn for its name, and the batch on the model's device."""
    model = script.build_model()
    device = next(model.parameters()).device
    with torch.no_grad():
        for name, weight in model.named_parameters():
            generator = torch.Generator().manual_seed(seed + zlib.crc32(name.encode()))
            weight.copy_(0.3 * torch.randn(weight.shape, generator=generator))
    return model, readings.to(device), states.to(device)
