"""`check`, `check.all` and `check --watch`."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

from invoke import Context

from gpulab import wire
from gpulab.catalogue import Exercise
from gpulab.model import Device, Grade, LabError, Verdict, in_language
from gpulab.tasks.command import (
    Bench,
    chosen_device,
    command,
    complain,
    console,
    keep,
    print_json,
    say,
)
from gpulab.tasks.grader import Judged
from gpulab.tasks.render import LiveCheck, markdown, verdict

WATCH_EVERY = 0.5  # seconds between two looks at the work folder


@command
def check(
    _: Context, exercise: str, watch: bool = False, device: str | None = None, json: bool = False
) -> int:
    """Judge your work. --watch judges again at each save; --device cpu, cuda or rehearsal."""
    bench = Bench.here()
    chosen, wanted = bench.exercise(exercise), chosen_device(device)
    if watch and json:
        raise LabError("--watch shows verdicts as they come; leave out --json.")
    if watch:
        return _watch(bench, chosen, wanted)
    grade = _judge(bench, chosen, wanted, json)
    if json:
        print_json(wire.to_json(grade))
    return grade.verdict.exit_code


@command
def check_all(_: Context, device: str | None = None, json: bool = False) -> int:
    """Judge all your work; exit code 0 when all is fixed, 2 when anything is not."""
    bench, wanted = Bench.here(), chosen_device(device)
    grades: list[Grade] = []
    failures: list[LabError] = []
    for exercise in bench.catalogue:
        try:
            grades.append(_judge(bench, exercise, wanted, json))
        except LabError as error:  # the others are judged all the same
            complain(f"{exercise.name}: {error}")
            failures.append(error)
    if json:
        print_json([wire.to_json(grade) for grade in grades])
    if failures:
        return max(error.code for error in failures)
    verdicts = {grade.verdict for grade in grades}
    if Verdict.NOT_FIXED in verdicts:
        return Verdict.NOT_FIXED.exit_code
    return max((v.exit_code for v in verdicts), default=0)


def _judge(bench: Bench, exercise: Exercise, device: Device | None, quiet: bool) -> Grade:
    work = bench.work.folder(exercise)
    if quiet:
        judged = bench.grader.check(exercise, work, device, _crash_only)
    else:
        with LiveCheck(console, bench.language) as live:
            judged = bench.grader.check(exercise, work, device, lambda event: _show(live, event))
        _tell(bench, exercise, judged)
    if judged.unrecorded is not None:
        complain(f"This verdict was not recorded. {judged.unrecorded}")
    return judged.grade


def _show(live: LiveCheck, event: dict[str, Any]) -> None:
    _crash_only(event)
    live(event)
    if event["event"] == "check":
        live.judged(wire.check_result(event["result"]))


def _crash_only(event: dict[str, Any]) -> None:
    """Keep the account of a crashed check in a file; it holds the hidden check's source."""
    if event["event"] == "crash":
        complain(f"A check crashed; for the author: {keep(event['text'], 'gpulab-check-')}")


def _tell(bench: Bench, exercise: Exercise, judged: Judged) -> None:
    if exercise.facts.memory_mib is not None:
        _draw_memory(bench, judged.grade)
    console.print(verdict(judged.grade, bench.language), soft_wrap=True)
    if judged.debrief:
        console.print(markdown(in_language(judged.debrief, bench.language)))


def _draw_memory(bench: Bench, grade: Grade) -> None:
    """The memory curve, under that of the last check that was not fixed."""
    from gpulab.tasks import curve  # noqa: PLC0415 - few exercises need it, and it takes long

    if not any(result.evidence.get("attempts") for result in grade.checks):
        return
    recorded: list[dict[str, Any]] = []
    with contextlib.suppress(LabError):  # the verdict is there, whatever became of the record
        recorded = bench.grader.grades()
    earlier = [
        found
        for found in map(wire.grade, recorded)
        if found.exercise == grade.exercise
        and found.verdict is Verdict.NOT_FIXED
        and found.started < grade.started
    ]
    before = {"before": curve.of_grade(earlier[-1])} if earlier else {}
    console.print(curve.draw({**before, "now": curve.of_grade(grade)}))


def _watch(bench: Bench, exercise: Exercise, device: Device | None) -> int:
    folder, seen = bench.work.folder(exercise), None
    say(f"Watching {folder}; Ctrl-C ends.")
    while True:
        state = _state(folder)
        if state == seen:
            time.sleep(WATCH_EVERY)
            continue
        seen = state
        try:
            grade = _judge(bench, exercise, device, quiet=False)
        except LabError as error:
            complain(str(error))
            continue
        if grade.verdict is Verdict.FIXED:
            return grade.verdict.exit_code


def _state(folder: Path) -> list[tuple[str, int, int]]:
    found = []
    for path in sorted(folder.rglob("*")):
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue  # an editor replaces files while it saves
        if "__pycache__" not in path.parts and not path.is_dir():
            found.append((str(path), status.st_mtime_ns, status.st_size))
    return found
