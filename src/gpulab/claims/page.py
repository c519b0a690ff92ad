"""docs/claims.md, made of the records and of the tests that prove them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from gpulab.claims.records import Claim, Proof, Subject, Truth, load, proofs

HEAD = """# What the article says, tested

The lab grew out of an article, "PyTorch's core primitives: a cognitive map". Each of its claims has
a row here: the verdict on the torch that this project is tested with, what really happens, and what
the lab teaches. A verdict is not written down but found: the tests in `tests/claims/` that carry
the row's number say part by part whether torch does as claimed, and fail when a release changes
that. `invoke test --tier claims` runs them.

`python -m gpulab.claims` writes this page from the records in `src/gpulab/claims/`; edit those.
"""
COLUMNS = (
    "#",
    "§",
    "claim",
    "verdict",
    "what happens",
    "what the lab teaches",
    "place",
    "shown on",
)


def page(root: Path) -> str:
    """The page for a checkout."""
    subjects, known = load(), proofs(root / "tests" / "claims")
    parts = [HEAD, count(subjects, known) + "\n"]
    parts += [_section(subject, known) for subject in subjects]
    return "\n".join(parts)


def count(subjects: list[Subject], known: list[Proof]) -> str:
    """How many claims there are, what became of them, and where that can be shown."""
    claims = [claim for subject in subjects for claim in subject.claim]
    truths = Counter(claim.truth for claim in claims)
    places = Counter(shown_on(claim, known) for claim in claims)
    verdicts = ", ".join(f"{truths[truth]} {truth}" for truth in Truth)
    return (
        f"{len(claims)} claims: {verdicts}. {places['CPU'] + places['CPU, GPU']} are decided on a "
        f"CPU ({places['CPU, GPU']} of them once more on a GPU), {places['GPU']} on a GPU only, "
        f"{places['-']} by nothing that can be run."
    )


def shown_on(claim: Claim, known: list[Proof]) -> str:
    """`CPU`, `CPU, GPU`, `GPU`, or `-` where no test decides it."""
    where = {"GPU" if proof.gpu else "CPU" for proof in known if proof.number == claim.number}
    return ", ".join(sorted(where)) or "-"


def _section(subject: Subject, known: list[Proof]) -> str:
    rows = [COLUMNS, ("---",) * len(COLUMNS)]
    for claim in subject.claim:
        truth = f"**{claim.truth}**" if claim.truth is Truth.FALSE else claim.truth.value
        really = f"{claim.really} ({claim.untestable})" if claim.untestable else claim.really
        place = f"{claim.primitive} \N{MULTIPLICATION SIGN} {claim.layer}"
        words = (claim.said, truth, really, claim.lesson, place, shown_on(claim, known))
        rows.append((str(claim.number), claim.section, *words))
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return f"## {subject.title}\n\n" + "\n".join(lines) + "\n"
