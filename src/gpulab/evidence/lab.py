"""The `lab` fixture: attempts on demand, fresh inputs, trusted references."""

from __future__ import annotations

import ast
import functools
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpulab import attempts
from gpulab.attempts import (
    Attempt,
    Call,
    Job,
    Launcher,
    Limits,
    Line,
    LocalLauncher,
    NotPossibleHereError,
)
from gpulab.catalogue import CheckFile, Exercise
from gpulab.catalogue.exercises import Start
from gpulab.evidence.report import CannotDecide, Said, notebook
from gpulab.evidence.require import who_waits
from gpulab.model import Device, LabError
from gpulab.observe import Observer

CURVE_POINTS = 60

Progress = Callable[[str, Line | Observer], None]


@dataclass(frozen=True)
class Order:
    """What the grader was told: which work, on what, where to put things."""

    checks: CheckFile
    submission: Path
    trusted: Path  # the shipped folder with the reference solution laid over it
    scratch: Path
    python: Path
    device: Device
    device_bytes: int
    seed: int


class Lab:
    """Makes attempts for the checks of one exercise."""

    def __init__(self, order: Order, progress: Progress, launcher: Launcher | None = None) -> None:
        self._order = order
        self._progress = progress
        self._launcher = launcher or LocalLauncher()
        self._shared: list[Path] = []
        self._coming_back: list[Path] = []
        self._visited: set[Path] = set()  # what the submission may have written to
        self._numbers = itertools.count(1)  # one source for both threads of `both`
        self.rng = np.random.default_rng(order.seed)

    @property
    def device(self) -> Device:
        """What stands behind `cuda`."""
        return self._order.device

    @property
    def exercise(self) -> Exercise:
        """The exercise's facts."""
        return self._order.checks.exercise

    def path(self, name: str, *, comes_back: bool = False) -> Path:
        """A fresh folder that attempts can read and write.

        Args:
            name: its last part.
            comes_back: what the submission wrote there is to be looked at. No trusted attempt is
                given such a folder any more once the submission may have been there: what it
                reads must be ours.
        """
        folder = self._order.scratch / f"inputs-{next(self._numbers)}" / name
        folder.mkdir(parents=True)
        self._shared.append(folder)
        if comes_back:
            self._coming_back.append(folder)
        return folder

    def run(self, *arguments: str) -> Attempt:
        """An attempt that runs the script as `python train.py arguments` does."""
        return self._attempt("submission", arguments=arguments)

    def call(self, function: str, *args: Any, **kwargs: Any) -> Attempt:
        """An attempt that imports the script and calls one of its functions."""
        return self._attempt("submission", call=Call(function, args, kwargs))

    def probe(self, function: str, *args: Any, **kwargs: Any) -> Attempt:
        """An attempt that calls `function(script, *args, **kwargs)` of probe.py."""
        return self._attempt("submission", call=self._probe(function, args, kwargs))

    def elsewhere(self, function: str, *args: Any, **kwargs: Any) -> Attempt:
        """A probe where none of the attendee's files are; its `script` is an empty module."""
        return self._attempt("elsewhere", call=self._probe(function, args, kwargs))

    def reference(self, function: str, *args: Any, **kwargs: Any) -> Attempt:
        """The same probe on the hidden solution.

        Raises:
            LabError: the solution gave no answer.
        """
        return self._reference(self._probe(function, args, kwargs))

    def _reference(self, call: Call, stop: threading.Event | None = None) -> Attempt:
        attempt = self._attempt("trusted", call=call, stop=stop)
        if not attempt.answered:
            said = attempt.error or attempt.output("stderr")[-500:] or attempt.ended
            raise LabError(f"the reference solution gave no answer: {said}", code=4)
        return attempt

    def both(self, function: str, *args: Any, **kwargs: Any) -> tuple[Attempt, Attempt]:
        """The attempt and the trusted attempt on the same inputs, side by side."""
        call, stop = self._probe(function, args, kwargs), threading.Event()
        self._visited.update(self._coming_back)  # before either begins
        with ThreadPoolExecutor(1) as pool:
            trusted = pool.submit(self._reference, call, stop)
            try:
                mine = self._attempt("submission", call=call)
            except BaseException:
                stop.set()
                raise
            return mine, trusted.result()

    def _probe(self, function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        path = self._order.checks.folder / "probe.py"
        if function not in _functions_of(path):
            raise LabError(f"{path} has no function `{function}`.", code=4)
        return Call(function, args, kwargs, probe=path)

    def _attempt(
        self,
        which: str,
        arguments: tuple[str, ...] = (),
        call: Call | None = None,
        stop: threading.Event | None = None,
    ) -> Attempt:
        attempt = self._run(which, arguments, call, stop)
        if attempt.short_of_gpu_memory and attempt.gpu_others:
            attempt = self._run(which, arguments, call, stop)
            if attempt.short_of_gpu_memory and attempt.gpu_others:
                raise CannotDecide(Said("gpu_taken", {"mib": attempt.gpu_others >> 20}))
        return attempt

    def _run(
        self,
        which: str,
        arguments: tuple[str, ...],
        call: Call | None,
        stop: threading.Event | None,
    ) -> Attempt:
        scratch = self._order.scratch / f"attempt-{next(self._numbers)}"
        scratch.mkdir()
        facts = self.exercise.facts
        shared, returned = self._folders(which)
        job = Job(
            folder=self._folder(which),
            script=facts.script,
            scratch=scratch,
            arguments=arguments,
            call=call,
            python=self._order.python,
            device=self.device,
            device_bytes=self._order.device_bytes,
            shm_bytes=_bytes(facts.shm_mib),
            shared=shared,
            returned=returned,
            cold=facts.start is Start.COLD,
            limits=Limits(seconds=facts.seconds, memory=_bytes(facts.memory_mib)),
        )
        progress = functools.partial(self._progress, which)
        try:
            attempt = attempts.run(job, progress, stop, self._launcher)
        except NotPossibleHereError as error:
            raise CannotDecide(Said("not_possible_here", {"why": str(error)})) from None
        if which != "trusted":
            notebook.attempts.append(summary(attempt))
        return attempt

    def _folders(self, which: str) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """Folders that an attempt may be given paths of, and those of them that come back."""
        if which != "trusted":
            self._visited.update(self._coming_back)
            return tuple(self._shared), tuple(self._coming_back)
        ours = tuple(folder for folder in self._shared if folder not in self._visited)
        return ours, ours

    def _folder(self, which: str) -> Path:
        if which == "submission":
            return self._order.submission
        if which == "trusted":
            return self._order.trusted
        folder = self._order.scratch / f"elsewhere-{next(self._numbers)}"
        folder.mkdir()
        (folder / self.exercise.facts.script).touch()
        return folder


def _functions_of(path: Path) -> set[str]:
    """The names of a file's own functions; without the file, none."""
    body = ast.parse(path.read_bytes()).body if path.is_file() else []
    return {node.name for node in body if isinstance(node, ast.FunctionDef)}


def _bytes(mib: int | None) -> int | None:
    return None if mib is None else mib << 20


def summary(attempt: Attempt) -> dict[str, Any]:
    """An attempt's evidence as JSON, its memory curve thinned to CURVE_POINTS samples."""
    evidence = attempt.evidence
    step = max(1, len(evidence.memory) // CURVE_POINTS)
    return {
        "ended": attempt.ended.value,
        "exit_code": attempt.exit_code,
        "wall_s": round(evidence.wall, 3),
        "cpu_s": round(evidence.cpu, 3),
        "peak_private_bytes": max((s.private for s in evidence.memory), default=0),
        "memory": [[round(s.at, 2), s.private, s.gpu] for s in evidence.memory[::step]],
        "processes": [
            {"role": p.role, "cpu_s": round(p.cpu, 2), "read_bytes": p.read}
            for p in evidence.processes
        ],
        "left_running": attempt.left_running,
        "gpu_others_bytes": attempt.gpu_others,
        "gpu_left_bytes": attempt.gpu_left,
        "missing_observers": list(evidence.missing),
        "waiting": who_waits(attempt.hang) if attempt.hang else [],
    }
