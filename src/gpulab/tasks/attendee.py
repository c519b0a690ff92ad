"""What attendees run, checks apart: list, show, run, hint, reset, pack."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from invoke import Context
from rich.text import Text

from gpulab.catalogue import Exercise
from gpulab.model import LabError, Verdict, in_language
from gpulab.tasks.command import Bench, chosen_device, command, console, print_json, say
from gpulab.tasks.render import STYLES, markdown


@command
def list_(_: Context, set: str = "", json: bool = False) -> int:  # noqa: A002 - the option's name
    """Show the exercises and how far you are. --set half-day shows that set only."""
    bench = Bench.here()
    exercises = [e for e in bench.catalogue if not set or set in e.facts.sets]
    if not exercises:
        known = sorted({name for e in bench.catalogue for name in e.facts.sets})
        raise LabError(f"There is no set {set!r}; there are {', '.join(known) or 'none'}.")
    far = bench.grader.progress()
    rows = [_row(bench, e, far.best.get(e.name), far.checks.get(e.name, 0)) for e in exercises]
    if json:
        print_json(rows)
        return 0
    from rich.table import Table  # noqa: PLC0415 - no other of the quick commands needs it

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
    console.print(markdown(chosen.brief(bench.language)))
    say(f"Your copy: {folder / chosen.facts.script}")
    return 0


@command
def hint(_: Context, exercise: str, again: bool = False) -> int:
    """Show the next hint (three in all). --again repeats those you have seen."""
    bench = Bench.here()
    chosen = bench.exercise(exercise)
    hints = chosen.hints(bench.language)
    seen = bench.grader.progress().hints.get(chosen.name, 0)
    if again and not seen:
        raise LabError(f"You have seen no hint yet; `invoke hint {chosen.name}` shows the first.")
    first = 1
    if not again and seen < len(hints):  # else there is no next one, and all are repeated
        first = seen = seen + 1
        bench.grader.take_hint(chosen.name, seen)
    for number in range(first, seen + 1):
        console.print(markdown(f"**{number}/{len(hints)}** {hints[number - 1]}"))
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
    say(str(bench.work.pack(bench.grader.grades(), target)))
    return 0


@command
def run(
    _: Context, exercise: str, device: str | None = None, plot: str = "", json: bool = False
) -> int:
    """Run your script under the watch: a hang ends with its diagnosis. --plot FILE.png or .svg."""
    from gpulab.tasks import trial  # noqa: PLC0415 - takes long, and no other command needs it

    bench = Bench.here()
    return trial.run(bench, bench.exercise(exercise), chosen_device(device), plot, json=json)
