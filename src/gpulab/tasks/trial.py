"""`run`: the attendee's own script under the watch, nothing hidden in it."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from gpulab import attempts
from gpulab.attempts import Attempt, Ended, Job, Limits, Line
from gpulab.attempts.runner import Listener
from gpulab.catalogue import Exercise
from gpulab.catalogue.variants import lay_out
from gpulab.evidence.lab import summary
from gpulab.evidence.report import CannotDecide, CheckFailed
from gpulab.evidence.require import require_finished
from gpulab.evidence.words import message
from gpulab.grading import machine, scratch_folder
from gpulab.model import Device, LabError, in_language
from gpulab.observe import Gpu, Observer
from gpulab.tasks import curve
from gpulab.tasks.command import Bench, console, print_json
from gpulab.tasks.render import plain


def run(bench: Bench, exercise: Exercise, device: Device | None, plot: str, *, json: bool) -> int:
    """Run the script once and say how it went.

    With `plot`, the shipped script runs too, and both memory curves are written to that file.
    """
    if plot:
        curve.check_target(Path(plot))
    folder = bench.work.folder(exercise)
    kind = _device(bench, exercise, folder / exercise.facts.script, device)
    with scratch_folder() as scratch:
        if not json:
            console.print(f"[dim]python {exercise.facts.script} on {kind}[/dim]")
        attempt = _run(exercise, folder, scratch / "now", kind, None if json else _print_line)
        curves = {"now": attempt.evidence.memory}
        if plot:
            shipped = lay_out(exercise, scratch / "shipped")
            before = _run(exercise, shipped, scratch / "before", kind)
            curves = {"before": before.evidence.memory, **curves}
            curve.save(Path(plot), curves)
    if json:
        print_json({"device": kind.value, **summary(attempt)})
        return 0
    if plot or exercise.facts.memory_mib is not None:
        console.print(curve.draw(curves))
    _tell_end(bench, attempt)
    return 0


def _device(bench: Bench, exercise: Exercise, script: Path, device: Device | None) -> Device:
    if not script.is_file():
        raise LabError(
            f"{script} is missing; `invoke reset {exercise.name}` brings it back.", code=2
        )
    python, gpu = machine.attempt_python(), Gpu()
    try:
        machine.check_torch(exercise, python, machine.look_at_python(python, script))
        return machine.choose_device(exercise, device, python, gpu)
    except CannotDecide as undecided:
        words = message(undecided.said, {})
        raise LabError(in_language(words.texts, bench.language), code=3) from None


def _run(
    exercise: Exercise, folder: Path, scratch: Path, kind: Device, listener: Listener | None = None
) -> Attempt:
    facts = exercise.facts
    scratch.mkdir()
    job = Job(
        folder=folder,
        script=facts.script,
        scratch=scratch,
        python=machine.attempt_python(),
        device=kind,
        shm_bytes=facts.shm_mib and facts.shm_mib << 20,
        limits=Limits(seconds=facts.seconds, memory=facts.memory_mib and facts.memory_mib << 20),
    )
    return attempts.run(job, listener)


def _print_line(seen: Line | Observer) -> None:
    if isinstance(seen, Line):
        console.print(Text(plain(seen.text)), soft_wrap=True)


def _tell_end(bench: Bench, attempt: Attempt) -> None:
    evidence = attempt.evidence
    try:
        require_finished(attempt)
    except (CheckFailed, CannotDecide) as failed:
        if attempt.ended is not Ended.EXIT or isinstance(failed, CannotDecide):
            words = in_language(message(failed.said, {}).texts, bench.language)
            console.print(Text(plain(words), style="bold red"), soft_wrap=True)
    peak = max((sample.private for sample in evidence.memory), default=0) >> 20
    console.print(
        f"[dim]{attempt.ended}, {evidence.wall:.1f} s, CPU {evidence.cpu:.1f} s, "
        f"private memory up to {peak} MiB[/dim]"
    )
