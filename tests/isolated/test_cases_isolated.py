"""Cases get their verdicts in the sandbox, too, cold and warm."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from gpulab.catalogue import Catalogue, load_checks
from gpulab.catalogue.variants import lay_out
from gpulab.grading.check import Request, check
from gpulab.grading.judges import Setup
from gpulab.grading.verify import Case, cases, prove
from gpulab.model import Verdict

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"


def all_cases(root: Path) -> list[Case]:
    return [case for e in Catalogue(root) for case in cases(load_checks(root, e))]


def references(root: Path) -> list[Case]:
    return [case for case in all_cases(root) if case.name == case.checks.table.reference]


@pytest.fixture(scope="module")
def isolation(config, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("etc") / "isolation.toml"
    path.write_text(as_toml(asdict(config)), encoding="utf-8")
    path.chmod(0o600)
    return path


def as_toml(table: dict, name: str = "") -> str:
    plain = {k: v for k, v in table.items() if not isinstance(v, dict) and v is not None}
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in plain.items())
    inner = {key: value for key, value in table.items() if isinstance(value, dict)}
    return (f"[{name}]\n" if name else "") + text + "".join(as_toml(t, k) for k, t in inner.items())


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("case", all_cases(GOLDEN), ids=lambda case: case.label)
def test_golden(case: Case, warm: bool, isolation: Path) -> None:
    proof = prove(GOLDEN, case, setup=Setup(isolation, warm=warm))
    assert proof.problem is None
    assert proof.grade.level == "isolated"


@pytest.mark.parametrize("case", references(ROOT), ids=lambda case: case.label)
def test_every_exercise_warm(case: Case, isolation: Path) -> None:
    """tests/catalogue says the same of cold attempts at the level `local`."""
    proof = prove(ROOT, case, setup=Setup(isolation, warm=True))
    assert proof.problem is None


def test_source_that_breaks_python_is_no_valid_python(isolation: Path, tmp_path: Path) -> None:
    exercise = Catalogue(GOLDEN).find("1")
    work = lay_out(exercise, tmp_path / "work", None)
    (work / "train.py").write_text("-" * 2_000_000 + "1\n", encoding="utf-8")
    grade = check(Request(GOLDEN, exercise, work, isolation=isolation))
    assert grade.verdict is Verdict.NOT_FIXED
    assert grade.reason is not None
    assert grade.reason.key == "syntax"
