"""The pytest plugin that turns hidden checks into results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from typing import Any

import pytest

from gpulab.catalogue import CheckFile
from gpulab.evidence import Lab
from gpulab.evidence.report import CannotDecide, CheckFailed, NotJudged, Said, notebook
from gpulab.evidence.words import lab_message, lab_texts, message
from gpulab.model import CheckResult, Device, Languages, Message, Outcome, in_language

Report = Callable[[CheckResult], None]

JUDGEMENTS: dict[type[BaseException], Outcome] = {
    CheckFailed: Outcome.FAILED,
    CannotDecide: Outcome.UNDECIDED,
    NotJudged: Outcome.NOT_RUN,
}


class ChecksPlugin:
    """Runs checks with a `lab`, in order, and reports each as it is judged."""

    def __init__(
        self, checks: CheckFile, lab: Lab, started: Callable[[str], None], report: Report
    ) -> None:
        self._checks, self._lab = checks, lab
        self._started, self._report = started, report
        self._outcomes: dict[str, Outcome] = {}

    @pytest.fixture(scope="session")
    def lab(self) -> Lab:
        """Attempts on demand."""
        return self._lab

    def pytest_configure(self, config: pytest.Config) -> None:
        """Name the marks that checks may carry."""
        config.addinivalue_line("markers", "after(checks): judged only once these have passed")
        config.addinivalue_line("markers", "gpu: only a real GPU can decide it")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Before any fixture: is this check to be judged at all?"""
        notebook.clear()
        self._started(item.name)
        if item.get_closest_marker("gpu") and self._lab.device is not Device.CUDA:
            raise NotJudged(Said("gpu_only"))
        for name in (name for mark in item.iter_markers("after") for name in mark.args):
            if self._outcomes.get(name) is not Outcome.PASSED:
                raise NotJudged(Said("after", {"title": name}))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, Any]:
        """Report once a check: when its setup failed, or when it was called."""
        judged = call.when == "call" or (call.when == "setup" and call.excinfo is not None)
        if judged:
            result = self._result(item.name, call.excinfo)
            self._outcomes[item.name] = result.outcome
            self._report(result)
        return (yield)

    def _result(
        self, name: str, failure: pytest.ExceptionInfo[BaseException] | None
    ) -> CheckResult:
        outcome, rationale = Outcome.PASSED, None
        try:
            if failure is not None:
                outcome, rationale = self._judge(failure.value)
            remarks = tuple(message(said, self._checks.table.remarks) for said in notebook.remarks)
        except (KeyError, IndexError, ValueError) as error:
            # A text that is missing or wants another value: the author's mistake.
            print(f"{name}: no text for {error!r}", file=sys.stderr)
            outcome, rationale, remarks = Outcome.UNDECIDED, lab_message("crashed"), ()
        if outcome is not Outcome.PASSED:
            remarks = ()
        evidence = {**notebook.notes, "attempts": notebook.attempts}
        return CheckResult(name, self._titles(name), outcome, rationale, remarks, evidence)

    def _judge(self, error: BaseException) -> tuple[Outcome, Message]:
        outcome = JUDGEMENTS.get(type(error))
        if outcome is None or not isinstance(error, CheckFailed | CannotDecide | NotJudged):
            return Outcome.UNDECIDED, lab_message("crashed")
        if error.said.key == "after":
            return outcome, self._after(error.said.values["title"])
        return outcome, message(error.said, self._checks.table.rationales)

    def _after(self, name: str) -> Message:
        titles = self._titles(name)
        texts = {
            code: text.format(title=in_language(titles, code))
            for code, text in lab_texts()["after"].items()
        }
        return Message("after", texts)

    def _titles(self, name: str) -> Languages:
        return self._checks.titles.get(name, {"en": name})
