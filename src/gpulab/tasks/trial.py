"""`run`: the attendee's own script under the watch, nothing hidden in it."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from gpulab import attempts
from gpulab.attempts import Attempt, Ended, Job, Limits, Line
from gpulab.catalogue import Exercise
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
    """Run the script once and say how it went; `plot` names a file for its memory curve."""
    if plot:
        curve.check_target(Path(plot))
    folder = bench.work.folder(exercise)
    script = folder / exercise.facts.script
    if not script.is_file():
        raise LabError(
            f"{script} is missing; `invoke reset {exercise.name}` brings it back.", code=2
        )
    python, gpu = machine.attempt_python(), Gpu()
    try:
        machine.check_torch(exercise, python, machine.look_at_python(python, script))
        kind = machine.choose_device(exercise, device, python, gpu)
    except CannotDecide as undecided:
        words = message(undecided.said, {})
        raise LabError(in_language(words.texts, bench.language), code=3) from None
    with scratch_folder() as scratch:
        job = Job(
            folder=folder,
            script=exercise.facts.script,
            scratch=scratch,
            python=python,
            device=kind,
            limits=Limits(
                seconds=exercise.facts.seconds,
                memory=exercise.facts.memory_mib and exercise.facts.memory_mib << 20,
            ),
        )
        if not json:
            console.print(f"[dim]python {script.name} on {kind}[/dim]")
        attempt = attempts.run(job, None if json else _print_line)
    if json:
        print_json({"device": kind.value, **summary(attempt)})
    else:
        _tell_end(bench, exercise, attempt)
    if plot:
        curve.save(Path(plot), {exercise.name: attempt.evidence.memory})
    return 0


def _print_line(seen: Line | Observer) -> None:
    if isinstance(seen, Line):
        console.print(Text(plain(seen.text)), soft_wrap=True)


def _tell_end(bench: Bench, exercise: Exercise, attempt: Attempt) -> None:
    evidence = attempt.evidence
    if exercise.facts.memory_mib is not None:
        console.print(curve.draw(evidence.memory))
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
