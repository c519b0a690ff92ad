"""Runs the suite's parts in processes of their own and counts what they find."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gpulab.rehearsal import launch
from gpulab.rehearsal.conformance.finding import GOOD, Finding

CAPACITY = 4 << 30
CASE_GROUPS = ("texts", "memory", "streams", "random", "processes", "precision", "assertion")
NO_DATABASE = "torch's operator database does not load: pip install expecttest"
_CHILD = "gpulab.rehearsal.conformance.child"
_SECONDS = 300
_BATCH = 100  # operators a process: its start-up is shared, a crash costs little


@dataclass(frozen=True)
class Suite:
    """The suite on one device, `rehearsal` or `cuda`."""

    device: str

    def everything(self, part: int = 1, parts: int = 1) -> Iterator[Finding]:
        """Judge the operators, the models and the cases.

        Args:
            part: Which slice of the operators, from 1; models and cases belong to the first.
            parts: Into how many slices the operators are cut.
        """
        names = self.operator_names()
        yield from self.operators(range(part - 1, len(names), parts), names)
        if part == 1:
            yield from self.models()
            yield from self.cases()

    def operator_names(self) -> list[str]:
        """Return the names in torch's database."""
        names: list[str] = self._run("names").stdout.split()
        if not names:
            raise RuntimeError(NO_DATABASE)
        return names

    def operators(self, indices: Sequence[int], names: Sequence[str]) -> Iterator[Finding]:
        """Judge operators by their places; one that ends its process is a crash."""
        for start in range(0, len(indices), _BATCH):
            waiting = list(indices[start : start + _BATCH])
            while waiting:
                run = self._run("operators", *map(str, waiting))
                begun, findings = _read(run.stdout)
                yield from findings
                if len(begun) > len(findings):
                    reason = f"exit status {run.returncode}"
                    yield Finding("operators", names[begun[-1]], "crash", reason)
                elif run.returncode:
                    raise RuntimeError(f"no conformance process: {run.stderr.strip()[-300:]}")
                waiting = waiting[len(begun) :]

    def models(self) -> Iterator[Finding]:
        """Judge the five models with their optimizers."""
        yield from self._whole("models", "models")

    def cases(self, groups: Iterable[str] = CASE_GROUPS) -> Iterator[Finding]:
        """Judge groups of cases, and on the rehearsal what it refuses."""
        refusals = ["refusals"] if self.device == "rehearsal" else []
        for group in [*groups, *refusals]:
            yield from self._whole("cases", group, group)

    def _whole(self, part: str, name: str, *arguments: str) -> Iterator[Finding]:
        run = self._run(part, *arguments)
        yield from _read(run.stdout)[1]
        if run.returncode:
            last = (run.stderr.strip().splitlines() or [""])[-1]
            yield Finding(part, name, "crash", f"exit status {run.returncode}: {last[:200]}")

    def _run(self, *arguments: str) -> Any:
        variables = dict(os.environ)
        if self.device == "rehearsal":
            variables |= launch.environment(CAPACITY)
            paths = [str(launch.SITE), variables.get("PYTHONPATH", "")]
            variables["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        command = [sys.executable, "-m", _CHILD, *arguments]
        try:
            return subprocess.run(
                command,
                env=variables,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            output = (error.stdout or b"").decode()
            return subprocess.CompletedProcess(command, 1, output, f"no end within {_SECONDS} s")


def _read(output: str) -> tuple[list[int], list[Finding]]:
    """Return the operators that were begun, and the findings."""
    lines = output.splitlines()
    begun = [int(line) for line in lines if line.isdigit()]
    findings = [Finding(**json.loads(line)) for line in lines if line.startswith('{"part"')]
    return begun, findings


def count(findings: Iterable[Finding]) -> dict[str, dict[str, int]]:
    """Return how many findings of every part have which outcome."""
    counts: dict[str, Counter[str]] = {}
    for finding in findings:
        counts.setdefault(finding.part, Counter())[finding.outcome] += 1
    return {part: dict(outcomes) for part, outcomes in counts.items()}


def differences(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that are not as they should be."""
    return [finding for finding in findings if finding.outcome not in GOOD]
