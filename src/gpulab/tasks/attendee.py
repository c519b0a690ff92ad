"""What attendees run, checks apart: list, show, run, hint, reset, pack."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from invoke import Context
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from gpulab import attempts
from gpulab.attempts import Attempt, Ended, Job, Limits, Line
from gpulab.catalogue import Exercise
from gpulab.evidence.lab import summary
from gpulab.evidence.report import CannotDecide, CheckFailed
from gpulab.evidence.require import require_finished
from gpulab.evidence.words import message
from gpulab.grading import machine, scratch_folder, wire
from gpulab.model import LabError, Verdict, in_language
from gpulab.observe import Gpu, Observer
from gpulab.tasks import curve
from gpulab.tasks.command import Bench, chosen_device, command, console, print_json, say
from gpulab.tasks.render import STYLES, plain


@command
def list_(_: Context, set: str = "", json: bool = False) -> int:  # noqa: A002 - the option's name
    """Show the exercises and how far you are. --set half-day shows that set only."""
    bench = Bench.here()
    exercises = [e for e in bench.catalogue if not set or set in e.facts.sets]
    if not exercises:
        known = sorted({name for e in bench.catalogue for name in e.facts.sets})
        raise LabError(f"There is no set {set!r}; there are {', '.join(known) or 'none'}.")
    best = bench.records.best()
    counts = bench.records.counts()
    rows = [_row(bench, e, best.get(e.name), counts.get(e.name, 0)) for e in exercises]
    if json:
        print_json(rows)
        return 0
    table = Table(box=None, pad_edge=False)
    for heading in ("exercise", "symptom", "level", "minutes", "state", "checks"):
        table.add_column(heading, no_wrap=heading != "symptom")
    for row in rows:
        state = Text(row["state"], style=STYLES.get(row["state"], "dim"))
        level, minutes, checks = str(row["level"]), str(row["minutes"]), str(row["checks"])
        table.add_row(row["exercise"], row["title"], level, minutes, state, checks)
    console.print(table)
    return 0


def _row(bench: Bench, exercise: Exercise, verdict: Verdict | None, tries: int) -> dict[str, Any]:
    facts = exercise.facts
    return {
        "exercise": exercise.name,
        "title": in_language(facts.title, bench.language),
        "primitive": facts.primitive.value,
        "layer": facts.layer.value,
        "level": facts.level,
        "minutes": facts.minutes,
        "state": verdict.value if verdict else "open",
        "checks": tries,
    }


@command
def show(_: Context, exercise: str) -> int:
    """Show an exercise's brief, and where your copy of it is."""
    bench = Bench.here()
    chosen = bench.exercise(exercise)
    folder = bench.work.folder(chosen)
    console.print(Markdown(chosen.brief(bench.language)))
    say(f"Your copy: {folder / chosen.facts.script}")
    return 0


@command
def hint(_: Context, exercise: str, again: bool = False) -> int:
    """Show the next hint (three in all). --again repeats those you have seen."""
    bench = Bench.here()
    chosen = bench.exercise(exercise)
    hints = chosen.hints(bench.language)
    seen = bench.records.hints(chosen.name)
    if again and not seen:
        raise LabError(f"You have seen no hint yet; `invoke hint {chosen.name}` shows the first.")
    first = 1
    if not again and seen < len(hints):  # else there is no next one, and all are repeated
        first = seen = seen + 1
        bench.records.take_hint(chosen.name, seen)
    for number in range(first, seen + 1):
        console.print(Markdown(f"**{number}/{len(hints)}** {hints[number - 1]}"))
    return 0


@command
def reset(_: Context, exercise: str, json: bool = False) -> int:
    """Bring the shipped files back; yours are moved to the archive first, never lost."""
    bench = Bench.here()
    chosen = bench.exercise(exercise)
    archived = bench.work.reset(chosen)
    if json:
        print_json({"exercise": chosen.name, "archived": archived and str(archived)})
    elif archived:
        say(f"Your files are in {archived}")
    return 0


@command
def pack(_: Context, to: str = "") -> int:
    """Write all your work and verdicts to one file to take home. --to names it."""
    bench = Bench.here()
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    target = Path(to) if to else Path.cwd() / f"gpulab-work-{stamp}.tar.gz"
    grades = [wire.to_json(grade) for grade in bench.records.grades()]
    say(str(bench.work.pack(grades, target)))
    return 0


@command
def run(
    _: Context, exercise: str, device: str | None = None, plot: str = "", json: bool = False
) -> int:
    """Run your script under the watch: a hang ends with its diagnosis. --plot FILE.png or .svg."""
    bench = Bench.here()
    chosen = bench.exercise(exercise)
    wanted = chosen_device(device)
    if plot:
        curve.check_target(Path(plot))
    folder = bench.work.folder(chosen)
    script = folder / chosen.facts.script
    if not script.is_file():
        raise LabError(f"{script} is missing; `invoke reset {chosen.name}` brings it back.", code=2)
    python, gpu = machine.attempt_python(), Gpu()
    try:
        machine.check_torch(chosen, python, machine.look_at_python(python, script))
        kind = machine.choose_device(chosen, wanted, python, gpu)
    except CannotDecide as undecided:
        words = message(undecided.said, {})
        raise LabError(in_language(words.texts, bench.language), code=3) from None
    with scratch_folder() as scratch:
        job = Job(
            folder=folder,
            script=chosen.facts.script,
            scratch=scratch,
            python=python,
            device=kind,
            limits=Limits(
                seconds=chosen.facts.seconds,
                memory=chosen.facts.memory_mib and chosen.facts.memory_mib << 20,
            ),
        )
        if not json:
            console.print(f"[dim]python {script.name} on {kind}[/dim]")
        attempt = attempts.run(job, None if json else _print_line)
    if json:
        print_json({"device": kind.value, **summary(attempt)})
    else:
        _tell_end(bench, chosen, attempt)
    if plot:
        curve.save(Path(plot), {chosen.name: attempt.evidence.memory})
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
