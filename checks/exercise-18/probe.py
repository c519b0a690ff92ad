"""Runs inside the attempt: train a model, and see what it has learnt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

LINES = 256


def trained(script: Any, records: Path, epochs: int, unseen: torch.Tensor) -> dict[str, Any]:
    """What `train` returned, where the model lies, and the classes it gives to unseen signals."""
    model = script.build_model()
    audit = script.train(model, records, epochs=epochs)
    device = next(model.parameters()).device
    with torch.no_grad():
        classes = model(spectra(unseen).to(device)).argmax(dim=1)
    return {"audit": audit, "device": device.type, "classes": classes}


def spectra(signals: torch.Tensor) -> torch.Tensor:
    """The first lines of the spectra (N, LINES) of signals (N, SAMPLES), as the brief has them."""
    return torch.fft.rfft(signals * torch.hann_window(signals.shape[1])).abs()[:, :LINES]
