"""Runs inside the attempt: the weights that a loss really depends on, whoever knows of them."""

from __future__ import annotations

from typing import Any

import torch


def examine(
    script: Any,
    measured: torch.Tensor,
    grades: torch.Tensor,
    moistures: torch.Tensor,
    other: torch.Tensor,
) -> dict[str, Any]:
    """Everything at once: start, an epoch, an epoch at a rate of 0, saving, moving."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model, optimizer = script.start(measured.to(device))
    boards = tuple(part.to(device) for part in (measured, grades, moistures))
    begun = {"offset": model.offset.detach().clone(), "scale": model.scale.detach().clone()}
    weights = weights_behind(script.training_loss(model, *boards))
    stood = standing(weights, lambda: script.train_epoch(model, optimizer, *boards))
    still = torch.optim.SGD([{"params": [weight]} for weight in weights], lr=0.0)
    still_stood = standing(weights, lambda: script.train_epoch(model, still, *boards))
    return {
        "begun": begun,
        "shapes": [list(weight.shape) for weight in weights],
        "stood": stood,
        "moved_at_0": [n for n in range(len(weights)) if n not in still_stood],
        "saved": saved(script, model, boards[0], other.to(device)),
        "moved": moved(model, measured),
    }


def weights_behind(loss: torch.Tensor) -> list[torch.Tensor]:
    """The leaves of the loss's graph."""
    nodes, seen, weights = [loss.grad_fn], set(), []
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            weights.append(node.variable)
        nodes.extend(following for following, _ in node.next_functions)
    return weights


def standing(weights: list[torch.Tensor], train: Any) -> list[int]:
    """The numbers of the weights that are after `train()` what they were before."""
    before = [weight.detach().clone() for weight in weights]
    train()
    return [n for n, weight in enumerate(weights) if torch.equal(weight.detach(), before[n])]


def saved(script: Any, model: Any, measured: torch.Tensor, other: torch.Tensor) -> dict[str, Any]:
    """What the model answers, and what another one does that has loaded its state dict."""
    state = {name: values.clone() for name, values in model.state_dict().items()}
    loaded, _ = script.start(other)
    try:
        loaded.load_state_dict(state)
    except (RuntimeError, KeyError) as error:
        return {"refused": str(error)}
    with torch.no_grad():
        return {"answers": dict(model(measured)), "loaded": dict(loaded(measured))}


def moved(model: Any, measured: torch.Tensor) -> dict[str, Any]:
    """What the model answers on the CPU in double precision."""
    try:
        with torch.no_grad():
            answers = model.to(device="cpu", dtype=torch.float64)(measured.double())
    except RuntimeError as error:
        return {"refused": str(error)}
    return {"kinds": sorted({f"{part.device.type} {part.dtype}" for part in answers.values()})}
