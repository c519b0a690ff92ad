"""Runs inside the attempt: train, load what was kept, train on from there."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812 - its usual name


def courses(script: Any, devices: list[str], **drawn: Any) -> dict[str, Any]:
    """What `course` answers on each device."""
    return {device: course(script, device, **drawn) for device in devices}


def course(
    script: Any, device: str, seed: int, epochs: int, onward: int, data: list[torch.Tensor]
) -> dict[str, Any]:
    """Train for `epochs`, load the checkpoint, and train on from it for `onward` epochs.

    `data` holds features and labels to train on, features and labels to validate on.
    """
    features, labels, *validation = (part.to(device) for part in data)
    torch.manual_seed(seed)
    model, optimizer = fresh(script, device)
    best, history = script.fit(model, optimizer, (features, labels), tuple(validation), epochs)
    answer = {"history": history, "epoch": best["epoch"], "loss": best["loss"]}
    model, optimizer = fresh(script, device)
    try:
        model.load_state_dict(best["model"])
        optimizer.load_state_dict(best["optimizer"])
    except Exception as error:  # noqa: BLE001 - whatever it is, the check says so
        return answer | {"refused": " ".join(f"{type(error).__name__}: {error}".split())}
    answer["restored"] = evaluate(model, *validation)
    _, answer["onward"] = script.fit(
        model, optimizer, (features, labels), tuple(validation), onward
    )
    return answer


def fresh(script: Any, device: str) -> tuple[Any, Any]:
    """A new model, and an optimizer that keeps averages of its own."""
    model = script.build_model().to(device)
    return model, torch.optim.Adam(model.parameters(), lr=2e-3)


def evaluate(model: Any, features: torch.Tensor, labels: torch.Tensor) -> float:
    """The validation loss of the brief."""
    model.eval()
    with torch.no_grad():
        return F.cross_entropy(model(features), labels).item()
