"""Runs inside the attempt: one model trained with a standing head, two with a learning one."""

from __future__ import annotations

import zlib
from typing import Any

import torch

Data = tuple[torch.Tensor, torch.Tensor]

RATE = 0.05


def watch(
    script: Any,
    seed: int,
    readings: torch.Tensor,
    kinds: torch.Tensor,
    held_readings: torch.Tensor,
    held_kinds: torch.Tensor,
) -> dict[str, Any]:
    """What training and evaluation do to a fresh model; readings are one batch."""
    device = next(build(script, seed).parameters()).device
    batch = (readings.to(device), kinds.to(device))
    held_out = (held_readings.to(device), held_kinds.to(device))
    return {
        "evaluated": evaluated(script, seed, held_out),
        "standing": standing(script, seed, batch, held_out),
        "often": learning(script, seed, batch, held_out, every=2),
        "seldom": learning(script, seed, batch, held_out, every=8),
    }


def evaluated(script: Any, seed: int, held_out: Data) -> dict[str, Any]:
    """A model in training mode, evaluated twice, and its numbers before and after."""
    model = build(script, seed)
    model.train()
    before = numbers(model)
    values = [list(script.evaluate(model, *held_out)) for _ in range(2)]
    return {"values": values, "before": before, "after": numbers(model)}


def standing(script: Any, seed: int, batch: Data, held_out: Data) -> dict[str, Any]:
    """Twice six steps on the same batch at a rate of 0: only statistics and dropout can move."""
    model = build(script, seed)
    data = tuple(part.repeat(6, *[1] * (part.dim() - 1)) for part in batch)
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.0)
    losses, evaluations = script.fine_tune(model, optimizer, data, held_out, epochs=2, every=4)
    return {
        "losses": list(losses),
        "evaluations": [list(values) for values in evaluations],
        "head": numbers(model.head),
    }


def learning(script: Any, seed: int, batch: Data, held_out: Data, every: int) -> dict[str, Any]:
    """Twice eight steps that learn; the backbone is the one that other lines use."""
    model = build(script, seed)
    before = {"backbone": numbers(model.backbone), "head": numbers(model.head)}
    data = tuple(part.repeat(8, *[1] * (part.dim() - 1)) for part in batch)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    torch.manual_seed(seed)
    script.fine_tune(model, optimizer, data, held_out, epochs=2, every=every)
    after = {"backbone": numbers(model.backbone), "head": numbers(model.head)}
    return {"before": before, "after": after}


def build(script: Any, seed: int) -> Any:
    """A model whose weights and statistics are drawn, each for its name."""
    backbone = script.build_backbone()
    fill(backbone, seed)
    model = script.build_model(backbone)
    fill(model.head, seed + 1)
    return model


def fill(module: Any, seed: int) -> None:
    """Fresh weights; statistics of a plausible size, variances above 0."""
    with torch.no_grad():
        for name, values in module.state_dict().items():
            if not values.is_floating_point():
                continue
            generator = torch.Generator().manual_seed(seed + zlib.crc32(name.encode()))
            drawn = 0.3 * torch.randn(values.shape, generator=generator)
            values.copy_(drawn.abs() + 0.5 if name.endswith("var") else drawn)


def numbers(module: Any) -> dict[str, torch.Tensor]:
    """A copy of every weight and statistic, counters left out."""
    state = module.state_dict().items()
    return {name: values.clone() for name, values in state if values.is_floating_point()}
