"""How a claim is tested: its test says, part by part, whether torch does as claimed.

    @pytest.mark.claim(31)
    def test_zeroing_a_gradient(part):
        ...
        part("zero_ leaves the gradient as it was", x.grad.sum() != 0)

The parts give the verdict (all: true, none: false, else partly), and the test fails where that is
not the recorded one. What really happens is asserted as in any test.
"""

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gpulab.claims import Truth, load_all

Part = Callable[[str, object], None]
CLAIMS = load_all()
PARTS = pytest.StashKey[list[tuple[str, bool]]]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "claim(number): decides this claim")
    config.addinivalue_line("markers", "gpu: only a GPU can show it")
    if hasattr(os, "sched_getaffinity"):
        torch.set_num_threads(min(2, len(os.sched_getaffinity(0))))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("only a GPU can show it")


@pytest.fixture
def part(request: pytest.FixtureRequest) -> Part:
    """Takes one part of the claim and whether torch does as claimed."""
    parts = request.node.stash.setdefault(PARTS, [])
    return lambda said, holds: parts.append((said, bool(holds)))


@pytest.fixture
def complaint() -> Callable[[Callable[[], object]], str]:
    """Calls a function: type and text of the exception that it raises, "" without one."""

    def call(function: Callable[[], object]) -> str:
        try:
            function()
        except Exception as error:  # noqa: BLE001 - whatever torch raises
            return f"{type(error).__name__}: {error}"
        return ""

    return call


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object:
    outcome = yield
    marker = pyfuncitem.get_closest_marker("claim")
    if marker is not None:
        _compare(CLAIMS[marker.args[0]].truth, pyfuncitem.stash.get(PARTS, []))
    return outcome


def _compare(recorded: Truth, parts: list[tuple[str, bool]]) -> None:
    assert parts, "the test says nothing about the claim; call `part`"
    held = [holds for _, holds in parts]
    found = Truth.TRUE if all(held) else Truth.PARTLY if any(held) else Truth.FALSE
    seen = "; ".join(f"{said}: {'yes' if holds else 'no'}" for said, holds in parts)
    assert found == recorded, (
        f"recorded as {recorded}, found {found} on {torch.__version__}: {seen}"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> object:
    report = yield
    marker = item.get_closest_marker("claim")
    if marker is not None:
        report.user_properties.append(("claim", str(marker.args[0])))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    decided = {
        int(value)
        for report in terminalreporter.getreports("passed")
        if report.when == "call"
        for name, value in report.user_properties
        if name == "claim"
    }
    if decided:
        counts = Counter(CLAIMS[number].truth for number in decided)
        shares = ", ".join(f"{counts[truth]} {truth}" for truth in Truth if counts[truth])
        terminalreporter.write_line(
            f"claims: {len(decided)} of {len(CLAIMS)} decided here by torch {torch.__version__}"
            f" ({shares})"
        )


@pytest.fixture(autouse=True)
def _as_new(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
