"""The tour as a notebook: the same steps, to be run by hand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from gpulab.claims import Claim, Truth
from gpulab.tour.source import Scene, Step


def make_notebook(scenes: Iterable[Scene], claims: Mapping[int, Claim]) -> dict[str, Any]:
    """The JSON of a notebook (format 4.5) for the kernel `python3`."""
    cells = []
    for scene in scenes:
        cells.append(_cell("markdown", f"## {scene.title}\n\n{scene.seconds} seconds"))
        for step in scene.steps:
            text = "\n\n".join(
                [
                    f"### {step.title}",
                    step.said,
                    *(f"> {said}" for said in corrections(step, claims)),
                ]
            )
            cells += [_cell("markdown", text), _cell("code", step.code.rstrip("\n"))]
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        "cells": cells,
    }


def corrections(step: Step, claims: Mapping[int, Claim]) -> list[str]:
    """What the article says otherwise, claim by claim."""
    answered = [claims[number] for number in step.claims]
    return [
        f"The article (claim {claim.number}, {claim.truth}): {claim.said}"
        for claim in answered
        if claim.truth in {Truth.FALSE, Truth.PARTLY}
    ]


def _cell(kind: str, source: str) -> dict[str, Any]:
    name = hashlib.sha256(f"{kind} {source}".encode()).hexdigest()[:12]
    code: dict[str, Any] = {"outputs": [], "execution_count": None} if kind == "code" else {}
    return {"cell_type": kind, "id": name, "metadata": {}, "source": source, **code}
