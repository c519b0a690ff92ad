"""Confirm the exercises on the hardware at hand, and keep the evidence.

    python -m gpulab.hardware --budget 240

Needs torch, pytest, numpy, rich, psutil, safetensors and nvidia-ml-py, nothing else; with
expecttest, torch's operator database is compared, too.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from gpulab import claims
from gpulab.catalogue import Catalogue, find_root, load_checks
from gpulab.claims import Confirmed
from gpulab.grading.forks import Forks
from gpulab.grading.verify import Case, Kind, Proof, cases, prove, wrong_elsewhere
from gpulab.model import Device, LabError
from gpulab.observe import Gpu
from gpulab.rehearsal.conformance.finding import Finding
from gpulab.rehearsal.conformance.suite import Suite, count, differences

SCHEMA = 1


def most_telling_first(root: Path) -> list[Case]:
    """Every case: the shipped scripts, then one solution each, then the wrong fixes, then the rest.

    The shortest exercises come first among equals.
    """
    ranked: list[tuple[int, float, Case]] = []
    for exercise in Catalogue(root):
        solutions = 0
        for case in cases(load_checks(root, exercise)):
            solutions += case.kind is Kind.SOLUTION
            later = case.kind is Kind.SOLUTION and solutions > 1
            rank = 3 if later else (Kind.SHIPPED, Kind.SOLUTION, Kind.WRONG_FIX).index(case.kind)
            ranked.append((rank, exercise.facts.seconds, case))
    return [case for _, _, case in sorted(ranked, key=lambda item: item[:2])]


class EvidenceFile:
    """The evidence of one run, written anew after every case so that nothing is lost."""

    def __init__(self, path: Path, device: Device, todo: list[Case]) -> None:
        self._path = path
        self._data: dict[str, Any] = {
            "schema": SCHEMA,
            "device": device.value,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": _commit(),
            "machine": _machine(Gpu()),
            "cases": [_not_run(case) for case in todo],
        }
        self._write()

    def add(self, index: int, proof: Proof) -> None:
        """Keep what became of case `index`."""
        self._data["cases"][index] = _row(proof)
        self._data["hardware"] = proof.grade.hardware and vars(proof.grade.hardware)
        self._write()

    def add_conformance(self, findings: list[Finding], left_out: str | None) -> None:
        """Keep how the device compares with the CPU, and every difference."""
        self._data["conformance"] = {
            "counts": count(findings),
            "differences": [asdict(finding) for finding in differences(findings)],
            "left_out": left_out,
        }
        self._write()

    def add_claims(self, confirmed: list[Confirmed], left_out: str | None) -> None:
        """Keep what the GPU says of the article's claims."""
        rows = [asdict(each) for each in confirmed]
        self._data["claims"] = {"tests": rows, "left_out": left_out}
        self._write()

    def _write(self) -> None:
        partial = self._path.with_name(self._path.name + ".part")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(self._data, indent=1, ensure_ascii=False) + "\n"
            partial.write_text(text, encoding="utf-8")
            partial.replace(self._path)
        except OSError as error:
            raise LabError(f"{self._path} cannot be written ({error.strerror}).") from None


def _commit() -> str:
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40"],
            capture_output=True,
            text=True,
            check=True,
            cwd=find_root(),
        )
        return done.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return os.environ.get("GPULAB_COMMIT", "unknown")


def _machine(gpu: Gpu) -> dict[str, Any]:
    return {
        "gpus": [device.name for device in gpu.devices],
        "no_gpu": gpu.absent,
        "driver": gpu.driver,
        "driver_cuda": gpu.cuda,
        "cpus": os.cpu_count(),
        "system": platform.platform(),
    }


def _names(case: Case) -> dict[str, str]:
    exercise = case.checks.exercise.name
    return {"exercise": exercise, "kind": case.kind.value, "name": case.name}


def _not_run(case: Case) -> dict[str, Any]:
    return {**_names(case), "result": "not run: budget"}


def _row(proof: Proof) -> dict[str, Any]:
    grade = proof.grade
    return {
        **_names(proof.case),
        "result": "right" if proof.problem is None else "wrong",
        "problem": proof.problem,
        "verdict": grade.verdict.value,
        "reason": grade.reason and grade.reason.texts["en"],
        "seed": grade.seed,
        "seconds": grade.seconds,
        "checks": [
            {
                "name": result.name,
                "outcome": result.outcome.value,
                "rationale": result.rationale and result.rationale.texts["en"],
                "remarks": [said.texts["en"] for said in result.remarks],
                "evidence": result.evidence,
            }
            for result in grade.checks
        ],
    }


def confirm(device: Device, budget: float, path: Path, console: Console) -> int:
    """Judge every case on `device` within `budget` seconds; 0 when all that ran are right.

    Raises:
        LabError: the evidence cannot be written, or the catalogue is broken.
    """
    root, begun = find_root(), time.monotonic()
    todo = [c for c in most_telling_first(root) if not wrong_elsewhere(c, device)]
    evidence = EvidenceFile(path, device, todo)
    deadline = begun + budget
    shown, not_shown = _claims(root, device, budget)
    evidence.add_claims(shown, not_shown)
    wrong = run = 0
    with Forks() as forks:
        for index, case in enumerate(todo):
            if time.monotonic() > deadline:
                break
            proof = prove(root, case, device, setup=forks.setup(case.checks.exercise, device))
            evidence.add(index, proof)
            run += 1
            wrong += proof.problem is not None
            said = "right" if proof.problem is None else f"WRONG: {proof.problem}"
            spent = time.monotonic() - begun
            console.print(f"{spent:5.0f} s  {case.label}: {said}", markup=False, soft_wrap=True)
    findings: list[Finding] = []
    left_out: str | None = "the CPU is what it compares with"
    if device is not Device.CPU:
        findings, left_out = _conformance(device, deadline)
    evidence.add_conformance(findings, left_out)
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_row("device", device.value)
    table.add_row("cases", f"{run - wrong} right, {wrong} wrong, {len(todo) - run} not run: budget")
    differing = len(differences(findings))
    said = f"{len(findings) - differing} as the CPU, {differing} different"
    table.add_row("conformance", f"{said}, left out: {left_out or 'nothing'}")
    confirmed = sum(each.outcome == "confirmed" for each in shown)
    said = f"{confirmed} confirmed, {len(shown) - confirmed} not"
    table.add_row("claims", f"{said}, left out: {not_shown or 'nothing'}")
    table.add_row("evidence", str(path))
    console.print(table)
    return 2 if wrong else 0


def _conformance(device: Device, deadline: float) -> tuple[list[Finding], str | None]:
    """Findings until the deadline, the quick and telling parts first; and what was left out."""
    suite = Suite(device.value)
    findings: list[Finding] = []
    try:
        if time.monotonic() < deadline:
            names = suite.operator_names()
            operators = suite.operators(range(len(names)), names)
            for finding in chain(suite.cases(), suite.models(), operators):
                findings.append(finding)
                if time.monotonic() > deadline:
                    return findings, "budget"
            return findings, None
    except RuntimeError as error:
        return findings, str(error)
    return findings, "budget"


def _claims(root: Path, device: Device, budget: float) -> tuple[list[Confirmed], str | None]:
    """The article's claims that only a GPU decides; and what was left out."""
    if device is not Device.CUDA:
        return [], "only a GPU decides them"
    try:
        return claims.confirm(root, only_gpu=True, seconds=budget), None
    except LabError as error:
        return [], str(error)


def default_device() -> Device:
    """The GPU where there is one, else the rehearsal device."""
    return Device.REHEARSAL if Gpu().absent else Device.CUDA


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="gpulab.hardware", description=__doc__)
    parser.add_argument("--budget", type=float, default=240.0, help="seconds (default 240)")
    parser.add_argument("--device", choices=[device.value for device in Device])
    parser.add_argument("--out", type=Path, default=Path("hardware-evidence.json"))
    given = parser.parse_args(arguments)
    device = Device(given.device) if given.device else default_device()
    try:
        return confirm(device, given.budget, given.out, Console(highlight=False))
    except LabError as error:
        print(error, file=sys.stderr)
        return error.code


if __name__ == "__main__":
    sys.exit(main())
