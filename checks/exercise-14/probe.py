"""Runs inside the attempts: export in one, open and ask in another that has no script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch


def export(
    script: Any, weights: dict[str, torch.Tensor], path: Path, windows: list[torch.Tensor]
) -> dict[str, Any]:
    """Export a model of these weights; returns its answers, or the names that are odd."""
    model = script.build_model()
    if odd := sorted(model.state_dict().keys() ^ weights.keys()):
        return {"odd": odd}
    model.load_state_dict(weights)
    with torch.no_grad():
        answers = [model(window) for window in windows]
    script.export(model, path)
    return {"answers": answers}


def ask(_: Any, path: Path, windows: list[torch.Tensor]) -> dict[str, Any]:
    """What the exported file says to each window, or why it does not open."""
    try:
        model = opened(str(path))
    except Exception as error:  # noqa: BLE001 - whatever it is, the check says so
        return {"refused": in_words(error)}
    return {"answers": [answer(model, window) for window in windows]}


def opened(path: str) -> Any:
    """The model in the file, by whichever of the two ways of the brief."""
    try:
        return torch.jit.load(path)
    except Exception:  # noqa: BLE001 - then the other way must do
        from torch import export as graphs  # noqa: PLC0415 - torch 2.0 has none

        return graphs.load(path).module()


def answer(model: Any, window: torch.Tensor) -> dict[str, Any]:
    """The answer to one window, or the error in its place."""
    try:
        with torch.no_grad():
            return {"wear": model(window)}
    except Exception as error:  # noqa: BLE001 - whatever it is, the check says so
        return {"error": in_words(error)}


def in_words(error: Exception) -> str:
    """An exception's last line, where torch says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else '-'}"[:200]
