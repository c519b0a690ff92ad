"""The records of the claims, and which tests prove them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from gpulab import tables
from gpulab.catalogue import Layer, Primitive
from gpulab.model import LabError

HOME = Path(__file__).parent


class Truth(StrEnum):
    """What became of a claim. OPEN: nothing that can be run decides it."""

    TRUE = "true"
    FALSE = "false"
    PARTLY = "partly"
    OPEN = "open"


@dataclass(frozen=True)
class Claim:
    """One claim of the article.

    Attributes:
        number: its row; never used again for another claim.
        section: of the article.
        said: the claim.
        truth: the verdict, which the claim's tests come to by themselves.
        really: what happens.
        lesson: what the lab teaches.
        primitive, layer: its place on the map.
        untestable: why no test can decide it; only then the truth is OPEN.
    """

    number: int
    section: str
    said: str
    truth: Truth
    really: str
    lesson: str
    primitive: Primitive
    layer: Layer
    untestable: str | None = None


@dataclass(frozen=True)
class Subject:
    """The claims of one file, in order."""

    title: str
    claim: tuple[Claim, ...]


@dataclass(frozen=True)
class Proof:
    """A test that decides a claim; `gpu`: only on a GPU."""

    number: int
    test: str
    gpu: bool


def load(home: Path = HOME) -> list[Subject]:
    """Every subject, in the order of its first claim.

    Raises:
        LabError: a file does not fit, or a number is given twice.
    """
    subjects = [tables.read(path, Subject) for path in home.glob("*.toml")]
    seen: set[int] = set()
    for claim in (claim for subject in subjects for claim in subject.claim):
        if claim.number in seen:
            raise LabError(f"Claim {claim.number} is recorded twice in {home}; keep one.")
        if (claim.truth is Truth.OPEN) != (claim.untestable is not None):
            raise LabError(f"Claim {claim.number}: `open` and `untestable` belong together.")
        seen.add(claim.number)
    return sorted(subjects, key=lambda subject: subject.claim[0].number)


def load_all() -> dict[int, Claim]:
    """Every claim by its number."""
    claims = [claim for subject in load() for claim in subject.claim]
    return {claim.number: claim for claim in sorted(claims, key=lambda claim: claim.number)}


def proofs(tests: Path) -> list[Proof]:
    """The tests in the folder `tests` that carry a claim's number, read without importing them."""
    found = []
    for path in sorted(tests.glob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                marks = [ast.unparse(decorator) for decorator in node.decorator_list]
                numbers = [_number(mark) for mark in marks if mark.startswith("pytest.mark.claim(")]
                gpu = "pytest.mark.gpu" in marks
                found += [Proof(number, f"{path.stem}::{node.name}", gpu) for number in numbers]
    return found


def _number(mark: str) -> int:
    return int(mark.removeprefix("pytest.mark.claim(").removesuffix(")"))
