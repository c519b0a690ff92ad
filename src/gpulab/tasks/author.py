"""What authors run: a new exercise, and the proof that one is right."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from invoke import Context
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from gpulab.catalogue import load_checks
from gpulab.catalogue.scaffold import scaffold
from gpulab.grading.forks import Forks
from gpulab.grading.judges import Setup
from gpulab.grading.verify import Case, Proof, cases, check_strictly, prove
from gpulab.model import Device, LabError
from gpulab.tasks.command import Bench, chosen_device, command, complain, console, print_json, say
from gpulab.tasks.render import STYLES, plain


@command
def new(_: Context, title: str) -> int:
    """Begin an exercise: both folders, with what is still to be written marked UNFINISHED."""
    bench = Bench.here()
    exercise, checks = scaffold(bench.catalogue, title)
    for line in (str(exercise), str(checks)):
        say(line)
    say(f"Next: docs/authoring.md; `invoke exercise.verify {exercise.name}` says what is missing.")
    return 0


@command
def verify(  # noqa: PLR0913, PLR0917 - options of a command
    _: Context,
    exercise: str = "",
    all: bool = False,  # noqa: A002 - the option's name
    runs: int = 1,
    jobs: int = 1,
    only: str = "",
    device: str | None = None,
    fresh: bool = False,
    json: bool = False,
) -> int:
    """Prove it: shipped fails for its reason, solutions pass, wrong fixes fail.

    --all proves every exercise; --runs 20 each case twenty times; --only WORD the cases whose
    name holds WORD; --jobs 2 two at a time; --fresh starts a Python for every attempt, where
    otherwise they are copies of one that has torch imported.
    """
    if bool(exercise) == all:
        raise LabError("Name one exercise, or say --all.")
    if runs < 1 or jobs < 1:
        raise LabError("--runs and --jobs must be at least 1.")
    bench, wanted = Bench.here(), chosen_device(device)
    chosen = list(bench.catalogue) if all else [bench.exercise(exercise)]
    todo: list[Case] = []
    for each in chosen:
        checks = load_checks(bench.root, each)
        check_strictly(checks)
        todo += [case for case in cases(checks) if only in case.label]
    if not todo:
        raise LabError(f"No case's name holds {only!r}.")
    with Forks() as forks:
        prover = _Prover(bench.root, wanted, None if fresh else forks)
        proofs = _prove_all(prover, todo * runs, jobs, quiet=json)
    if json:
        print_json([_row(proof) for proof in proofs])
    else:
        console.print(_table(todo, proofs, runs))
    return 2 if any(proof.problem for proof in proofs) else 0


@dataclass(frozen=True)
class _Prover:
    root: Path
    device: Device | None
    forks: Forks | None

    def __call__(self, case: Case) -> Proof:
        exercise, device = case.checks.exercise, self.device
        setup = self.forks.setup(exercise, device) if self.forks else Setup()
        return prove(self.root, case, device, _tell_crash, setup=setup)


def _prove_all(prover: _Prover, todo: list[Case], jobs: int, *, quiet: bool) -> list[Proof]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=quiet) as bar:
        task = bar.add_task("proving", total=len(todo))
        proofs = []
        for proof in _proofs(prover, todo, jobs):
            proofs.append(proof)
            bar.update(task, advance=1, description=proof.case.label)
            if proof.problem and not quiet:
                bar.console.print(Text(f"{proof.case.label}: {plain(proof.problem)}", style="red"))
    return proofs


def _proofs(prover: _Prover, todo: list[Case], jobs: int) -> Iterator[Proof]:
    with ThreadPoolExecutor(jobs) as pool:
        pending: list[Future[Proof]] = [pool.submit(prover, case) for case in todo]
        try:
            for done in as_completed(pending):
                yield done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _tell_crash(event: dict[str, Any]) -> None:
    if event["event"] == "crash":
        complain(event["text"])


def _row(proof: Proof) -> dict[str, Any]:
    return {
        "exercise": proof.case.checks.exercise.name,
        "kind": proof.case.kind.value,
        "name": proof.case.name,
        "verdict": proof.grade.verdict.value,
        "device": proof.grade.hardware.device.value if proof.grade.hardware else None,
        "seconds": proof.grade.seconds,
        "seed": proof.grade.seed,
        "problem": proof.problem,
    }


def _table(todo: list[Case], proofs: list[Proof], runs: int) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("case", "right", "seconds"):
        table.add_column(heading, no_wrap=True)
    for case in todo:
        mine = [proof for proof in proofs if proof.case.label == case.label]
        right = sum(proof.problem is None for proof in mine)
        style = STYLES["passed" if right == runs else "failed"]
        seconds = max(proof.grade.seconds for proof in mine)
        table.add_row(case.label, Text(f"{right}/{runs}", style=style), f"{seconds:.1f}")
    return table
