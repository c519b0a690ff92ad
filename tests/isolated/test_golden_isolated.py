"""Every golden case gets its verdict in the sandbox, too, cold and warm."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from gpulab.catalogue import Catalogue, load_checks
from gpulab.catalogue.variants import lay_out
from gpulab.grading import verify
from gpulab.grading.check import Request, check
from gpulab.model import Verdict

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
CASES = [
    case for exercise in Catalogue(GOLDEN) for case in verify.cases(load_checks(GOLDEN, exercise))
]


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
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_the_verdict_is_the_right_one(case, warm, isolation, monkeypatch) -> None:
    requests = []

    def isolated(request: Request, *others):
        requests.append(request)
        changed = Request(**{**vars(request), "isolation": isolation, "warm": warm})
        return check(changed, *others)

    monkeypatch.setattr(verify, "check", isolated)
    proof = verify.prove(GOLDEN, case)
    assert proof.problem is None
    assert proof.grade.level == "isolated"
    assert requests


def test_source_that_breaks_python_is_no_valid_python(isolation, tmp_path: Path) -> None:
    exercise = Catalogue(GOLDEN).find("1")
    work = lay_out(exercise, tmp_path / "work", None)
    (work / "train.py").write_text("-" * 2_000_000 + "1\n", encoding="utf-8")
    grade = check(Request(GOLDEN, exercise, work, isolation=isolation))
    assert grade.verdict is Verdict.NOT_FIXED
    assert grade.reason is not None
    assert grade.reason.key == "syntax"
