"""Every case of the catalogue is judged as it must be; `exercise.verify --runs 20` says more."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpulab.catalogue import Catalogue, load_checks
from gpulab.catalogue.exercises import DeviceNeed
from gpulab.grading.forks import Forks
from gpulab.grading.verify import Case, Kind, Proof, cases, prove
from gpulab.model import Device

ROOT = Path(__file__).parents[2]
EVERYTHING = [case for e in Catalogue(ROOT) for case in cases(load_checks(ROOT, e))]


def _on_cuda_too(case: Case) -> bool:
    """Scripts that run on anything must show, and lose, the same on `cuda`."""
    needs_any = case.checks.exercise.facts.needs.device is DeviceNeed.ANY
    reference = case.name == case.checks.table.reference
    return needs_any and (case.kind is Kind.SHIPPED or reference)


ON_CUDA_TOO = [case for case in EVERYTHING if _on_cuda_too(case)]


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    with Forks() as forks:
        yield forks


def _skip_where_impossible(proof: Proof) -> None:
    """A machine that cannot give attempts what the exercise asks for shows nothing of it."""
    for said in (result.rationale for result in proof.grade.checks):
        if said is not None and said.key == "not_possible_here":
            pytest.skip(said.texts["en"])


@pytest.mark.parametrize("case", EVERYTHING, ids=lambda case: case.label)
def test_case(case: Case, forks: Forks) -> None:
    crashes: list[str] = []

    def listen(event: dict[str, Any]) -> None:
        crashes.append(event.get("text", ""))

    proof = prove(ROOT, case, listener=listen, setup=forks.setup(case.checks.exercise, None))
    _skip_where_impossible(proof)
    assert proof.problem is None, f"{proof.problem}\nseed {proof.grade.seed}\n{crashes[-1]}"


@pytest.mark.parametrize("case", ON_CUDA_TOO, ids=lambda case: case.label)
def test_case_on_rehearsal(case: Case, forks: Forks) -> None:
    setup = forks.setup(case.checks.exercise, Device.REHEARSAL)
    proof = prove(ROOT, case, Device.REHEARSAL, setup=setup)
    _skip_where_impossible(proof)
    assert proof.problem is None, f"{proof.problem}\nseed {proof.grade.seed}"
    assert proof.grade.hardware is not None
    assert proof.grade.hardware.device is Device.REHEARSAL
