"""Running the claims' own tests, those for a GPU among them, and what came of each."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from gpulab.model import LabError


@dataclass(frozen=True)
class Confirmed:
    """A claim's test and its outcome: `confirmed`, or `contradicted` or `skipped` and why."""

    claim: int
    test: str
    outcome: str
    why: str | None = None


def confirm(root: Path, *, only_gpu: bool, seconds: float) -> list[Confirmed]:
    """Run the tests of a checkout's claims within `seconds`.

    Raises:
        LabError: they could not be run, or not in time.
    """
    with tempfile.TemporaryDirectory(prefix="gpulab-claims-") as folder:
        report = Path(folder, "report.xml")
        words = ["-m", "pytest", "-q", "tests/claims", f"--junitxml={report}"]
        words += ["-m", "gpu"] if only_gpu else []
        try:
            done = subprocess.run(
                [sys.executable, *words],
                cwd=root,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise LabError(f"The claims' tests took longer than {seconds:.0f} s.", code=4) from None
        if not report.is_file():
            raise LabError(f"The claims' tests could not be run: {done.stdout[-500:]}", code=4)
        cases = ET.parse(report).getroot().iter("testcase")  # noqa: S314 - pytest's own
        return [_confirmed(case) for case in cases]


def _confirmed(case: ET.Element) -> Confirmed:
    number = next(p for p in case.iter("property") if p.get("name") == "claim").get("value") or ""
    test = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
    outcome, why = "confirmed", None
    for kind, meaning in (("failure", "contradicted"), ("error", "contradicted"), ("skipped",) * 2):
        if (told := case.find(kind)) is not None:
            outcome, why = meaning, told.get("message")
    return Confirmed(int(number), test, outcome, why)
