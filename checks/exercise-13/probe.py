"""Runs inside the attempt: train on one batch, many times over."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


def trained(script: Any, weights: dict[str, torch.Tensor], trials: list[Any]) -> dict[str, Any]:
    """For each trial the weights that training ends with, and the types its products had.

    A trial is readings, targets, and how often the batch is repeated; each begins with `weights`.
    """
    answers = []
    for readings, targets, count in trials:
        model = script.build_model()
        if odd := sorted(model.state_dict().keys() ^ weights.keys()):
            return {"odd": odd}
        model.load_state_dict(weights)
        device = next(model.parameters()).device
        kinds = watch(model)
        script.train(model, [(readings.to(device), targets.to(device))] * count)
        answers.append({"weights": dict(model.state_dict()), "kinds": sorted(kinds)})
    return {"trials": answers}


def watch(model: Any) -> set[str]:
    """A set that fills with the types of what the model's linear layers put out."""
    kinds: set[str] = set()
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.register_forward_hook(
                lambda _module, _inputs, output: kinds.add(str(output.dtype).split(".")[-1])
            )
    return kinds
