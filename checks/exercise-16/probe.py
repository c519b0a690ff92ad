"""Runs inside the attempt: one training after the other in the same process."""

from __future__ import annotations

from typing import Any


def trainings(script: Any, seeds: list[int], **inputs: Any) -> list[Any]:
    """What each training showed, one for every seed."""
    return [script.train(seed=seed, **inputs) for seed in seeds]
