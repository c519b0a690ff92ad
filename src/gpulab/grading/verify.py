"""Prove an exercise: shipped script, solutions and wrong fixes, each judged as it must be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from gpulab.attempts.job import REHEARSAL_BYTES
from gpulab.catalogue import CheckFile
from gpulab.catalogue.checks import Failure
from gpulab.catalogue.variants import lay_out
from gpulab.grading.check import Request, check, scratch_folder
from gpulab.grading.judges import Judge, Listener, Setup
from gpulab.model import Device, Grade, LabError, Outcome, Verdict

LEAST_SOLUTIONS, LEAST_WRONG_FIXES = 2, 3
LOCAL = Setup()


class Kind(StrEnum):
    """What a case is made of."""

    SHIPPED = "shipped"
    SOLUTION = "solution"
    WRONG_FIX = "wrong fix"


@dataclass(frozen=True)
class Case:
    """A work folder and the verdict that it must get."""

    checks: CheckFile
    kind: Kind
    name: str
    variant: Path | None
    failure: Failure | None = None  # None: it must be `fixed`
    remark: str | None = None

    @property
    def label(self) -> str:
        """`exercise-4 wrong fix no_workers`."""
        return f"{self.checks.exercise.name} {self.kind} {self.name}".rstrip()


def unfinished(checks: CheckFile) -> Iterator[str]:
    """What an exercise still lacks before it can be proven."""
    table, folder = checks.table, checks.folder
    if len(table.solutions) < LEAST_SOLUTIONS:
        yield f"{folder / 'solutions'} needs at least {LEAST_SOLUTIONS} that differ in approach."
    if len(table.wrong_fixes) < LEAST_WRONG_FIXES:
        yield f"{folder / 'wrong_fixes'} needs at least {LEAST_WRONG_FIXES} that people tried."
    for folder in (checks.exercise.folder, checks.folder):
        for path in sorted(folder.rglob("*")):
            if path.suffix in {".md", ".py", ".toml"} and "UNFINISHED" in path.read_text("utf-8"):
                yield f"{path} still says UNFINISHED; write what belongs there."


def cases(checks: CheckFile) -> list[Case]:
    """The shipped script, every solution, every wrong fix."""
    table, folder = checks.table, checks.folder
    shipped = Case(checks, Kind.SHIPPED, "", None, failure=table.shipped)
    solutions = [
        Case(checks, Kind.SOLUTION, name, folder / "solutions" / name, remark=solution.remark)
        for name, solution in table.solutions.items()
    ]
    wrong = [
        Case(checks, Kind.WRONG_FIX, name, folder / "wrong_fixes" / name, failure=wrong_fix)
        for name, wrong_fix in table.wrong_fixes.items()
    ]
    return [shipped, *solutions, *wrong]


def wrong_elsewhere(case: Case, device: Device) -> bool:
    """Whether a wrong fix is wrong on other devices only."""
    if case.kind is not Kind.WRONG_FIX:
        return False
    devices = case.checks.table.wrong_fixes[case.name].devices
    return bool(devices) and device not in devices


@dataclass(frozen=True)
class Proof:
    """A case that was judged; `problem` is None where the verdict is the right one."""

    case: Case
    grade: Grade
    problem: str | None


def prove(
    root: Path,
    case: Case,
    device: Device | None = None,
    listener: Listener = lambda _: None,
    device_bytes: int = REHEARSAL_BYTES,
    setup: Setup = LOCAL,
) -> Proof:
    """Judge one case, by default at the level `local` and in fresh processes."""
    exercise = case.checks.exercise
    with scratch_folder() as scratch:
        work = lay_out(exercise, scratch / "work", case.variant)
        request = Request(root, exercise, work, device, device_bytes, isolation=setup.isolation)
        grade = check(request, listener, Judge(setup))
    device_used = grade.hardware.device if grade.hardware else Device.CPU
    if wrong_elsewhere(case, device_used):
        case = replace(case, failure=None)
    return Proof(case, grade, _problem(case, grade))


def _problem(case: Case, grade: Grade) -> str | None:
    expected = Verdict.FIXED if case.failure is None else Verdict.NOT_FIXED
    if grade.verdict is not expected:
        return f"{grade.verdict}, expected {expected}: {_told(grade)}"
    if case.failure is not None:
        return _wrong_reason(case.failure, grade)
    remarks = {said.key for result in grade.checks for said in result.remarks}
    if (case.remark and case.remark not in remarks) or (remarks and not case.remark):
        return f"remarks {sorted(remarks)}, expected {case.remark}"
    return None


def _wrong_reason(failure: Failure, grade: Grade) -> str | None:
    failed = [result for result in grade.checks if result.outcome is Outcome.FAILED]
    for result in failed:
        said = result.rationale.key if result.rationale else None
        if result.name == failure.check and said == failure.rationale:
            return None
    return f"not by {failure.check} for {failure.rationale}: {_told(grade)}"


def _told(grade: Grade) -> str:
    told = [
        f"{result.name} {result.outcome}: [{result.rationale.key}] {result.rationale.texts['en']}"
        for result in grade.checks
        if result.rationale is not None and result.outcome is not Outcome.NOT_RUN
    ]
    if grade.reason is not None:
        told.insert(0, f"[{grade.reason.key}] {grade.reason.texts['en']}")
    return "; ".join(told) or "all checks passed"


def check_strictly(checks: CheckFile) -> None:
    """Refuse an exercise that is not finished.

    Raises:
        LabError: it names everything that is missing.
    """
    missing = list(unfinished(checks))
    if missing:
        raise LabError("\n".join(missing))
