"""The records of the claims fit their tests, and the page is made of both."""

from pathlib import Path

import pytest

from gpulab.claims import Truth, confirm, load, load_all, proofs
from gpulab.claims.page import page
from gpulab.model import LabError
from gpulab.observe import Gpu

CHECKOUT = Path(__file__).resolve().parents[2]
TESTS = CHECKOUT / "tests" / "claims"


def test_the_page_is_current() -> None:
    written = (CHECKOUT / "docs" / "claims.md").read_text(encoding="utf-8")
    assert written == page(CHECKOUT), "run `python -m gpulab.claims`"


def test_numbers_run_from_one() -> None:
    assert list(load_all()) == list(range(1, len(load_all()) + 1))


def test_every_claim_that_can_be_tested_is() -> None:
    proven = {proof.number for proof in proofs(TESTS)}
    testable = {n for n, claim in load_all().items() if claim.truth is not Truth.OPEN}
    assert proven == testable


def test_every_test_decides_a_claim() -> None:
    """A test beside the claims' own would not be counted."""
    for path in TESTS.glob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        assert text.count("\ndef test_") == text.count("\n@pytest.mark.claim("), path.name


def test_a_number_given_twice(tmp_path: Path) -> None:
    record = (CHECKOUT / "src/gpulab/claims/export.toml").read_text(encoding="utf-8")
    for name in ("one", "other"):
        (tmp_path / f"{name}.toml").write_text(record, encoding="utf-8")
    with pytest.raises(LabError, match="Claim 104 is recorded twice"):
        load(tmp_path)


def test_open_without_a_reason(tmp_path: Path) -> None:
    record = (CHECKOUT / "src/gpulab/claims/export.toml").read_text(encoding="utf-8")
    (tmp_path / "one.toml").write_text(record.replace('"true"', '"open"'), encoding="utf-8")
    with pytest.raises(LabError, match="Claim 105: `open` and `untestable` belong together"):
        load(tmp_path)


def test_a_machine_without_a_gpu_confirms_nothing_of_what_needs_one() -> None:
    if not Gpu().absent:
        pytest.skip("this machine has a GPU")
    confirmed = confirm(CHECKOUT, only_gpu=True, seconds=120)
    assert {each.claim for each in confirmed} == {p.number for p in proofs(TESTS) if p.gpu}
    assert {each.outcome for each in confirmed} == {"skipped"}
    assert confirmed[0].why == "only a GPU can show it"


def test_what_a_test_contradicts_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "claims"
    folder.mkdir(parents=True)
    (folder / "conftest.py").write_text(
        "def pytest_itemcollected(item):\n    item.user_properties.append(('claim', '7'))\n"
    )
    (folder / "test_one.py").write_text(
        "def test_a():\n    pass\ndef test_b():\n    assert 1 == 2\n"
    )
    right, wrong = confirm(tmp_path, only_gpu=False, seconds=60)
    assert (right.claim, right.test, right.outcome) == (7, "test_one::test_a", "confirmed")
    assert (wrong.outcome, "assert 1 == 2" in wrong.why) == ("contradicted", True)
    with pytest.raises(LabError, match="longer than 0 s"):
        confirm(tmp_path, only_gpu=False, seconds=0.01)
