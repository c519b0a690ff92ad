"""`measure`: the article's figures on this machine, each as table, plot, CSV and JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from invoke import Collection, Context, Task
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from gpulab.measure import (
    Amp,
    Deadlock,
    Leak,
    Loader,
    Measurement,
    Results,
    Spawn,
    Taking,
    ZeroGrad,
    in_words,
)
from gpulab.model import LabError
from gpulab.tasks import curve
from gpulab.tasks.command import (
    INTERRUPTED,
    chosen_device,
    command,
    complain,
    console,
    print_json,
    say,
)

MEASUREMENTS: tuple[type[Measurement], ...] = (Loader, Deadlock, ZeroGrad, Leak, Amp, Spawn)


def collection() -> Collection:
    """The commands, one a measurement."""
    commands = Collection("measure")
    for kind in MEASUREMENTS:
        commands.add_task(_command(kind), name=kind.name)
    return commands


def _command(kind: type[Measurement]) -> Task[Any]:
    def measure(
        _: Context,
        runs: int = kind.usual_runs,
        only: str = "",
        device: str | None = None,
        plot: str = "",
        csv: str = "",
        json: bool = False,
    ) -> int:
        for target in filter(None, (plot, csv)):
            _check_folder(Path(target))
        if plot:
            curve.check_target(Path(plot))
        taking = Taking(kind(), runs, only, chosen_device(device))
        code = _take(taking, quiet=json)
        return max(code, _tell(taking.results, plot, csv, json=json))

    measure.__doc__ = (
        f"{kind.title}, beside the article's figure.\n\n"
        "--runs N of each case, --only WORD those that name it; --plot FILE.png or .svg, "
        "--csv FILE, --json. Ctrl-C keeps what was measured."
    )
    return command(measure)


def _check_folder(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise LabError(f"{path} cannot be written: there is no folder {path.parent}; make it.")


def _take(taking: Taking, *, quiet: bool) -> int:
    """Measure until it is done or stopped, which is no failure; the exit code."""
    if not quiet:
        say(taking.price)
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, disable=quiet, transient=True) as progress:
        bar = progress.add_task("", total=len(taking.cases))
        try:
            for done, case in enumerate(taking):
                progress.update(bar, completed=done, description=in_words(case))
        except KeyboardInterrupt:
            complain("Stopped; what was measured is kept.")
            return INTERRUPTED
    return 0


def _tell(results: Results, plot: str, csv: str, *, json: bool) -> int:
    """Everything that was asked for; 4 where a case could not be measured."""
    for failure in results.failures:
        complain(failure)
    if not results.rows:
        raise LabError("Nothing was measured.", code=4 if results.failures else 1)
    if csv:
        results.save_csv(Path(csv))
    if plot:
        results.save_plot(Path(plot))
    if json:
        print_json(results.as_json())
    else:
        console.print(_table(results))
        say(f"The article: {results.measurement.article}")
        for written in filter(None, (plot, csv)):
            say(written)
    return 4 if results.failures else 0


def _table(results: Results) -> Table:
    table = Table(title=results.measurement.title, title_justify="left", box=None, pad_edge=False)
    columns = results.measurement.columns
    for column in columns:
        table.add_column(column.heading, justify="left" if column is columns[0] else "right")
    for row in results.merged:
        table.add_row(*(column.text(row) for column in columns))
    return table
