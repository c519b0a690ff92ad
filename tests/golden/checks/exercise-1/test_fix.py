"""Hidden checks of the golden exercise."""

import pytest

from gpulab.evidence import Lab, fail, note, remark, require_answer, require_finished


def test_script_ends(lab: Lab) -> None:
    """The script runs to its end."""
    require_finished(lab.run())


def test_doubles(lab: Lab) -> None:
    """Every value is doubled."""
    values = [int(value) for value in lab.rng.integers(0, 1000, 10)]
    attempt = lab.call("double", values)
    answer = require_answer(attempt)
    note(first=values[0])
    if not isinstance(answer, list) or answer != [2 * value for value in values]:
        fail("wrong_values", given=values[0], got=str(answer)[:80], wanted=2 * values[0])
    if "slow" in attempt.output():
        remark("slow")


@pytest.mark.after("test_doubles")
def test_empty(lab: Lab) -> None:
    """No values give no values."""
    answer = require_answer(lab.call("double", []))
    if not isinstance(answer, list) or answer:
        fail("not_empty")


@pytest.mark.gpu
def test_on_gpu() -> None:
    """It is fast on a GPU."""
