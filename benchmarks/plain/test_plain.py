"""What the same check costs as plain pytest, in one process with torch."""

import importlib.util
import random
import statistics
from pathlib import Path

import torch

SCRIPT = Path(__file__).parents[1] / "catalogue/checks/exercise-1/solutions/mean/train.py"


def test_mean() -> None:
    """The mean is the mean."""
    spec = importlib.util.spec_from_file_location("train", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    train = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(train)
    values = [random.gauss() for _ in range(100)]
    assert abs(train.mean(torch.tensor(values)).item() - statistics.fmean(values)) < 1e-4
