"""`doctor`: this machine against its stack."""

from __future__ import annotations

import os
from dataclasses import asdict

from invoke import Context
from rich.text import Text

from gpulab import stack as pins
from gpulab.catalogue import find_root
from gpulab.doctor import Finding, Live, State, examine, look
from gpulab.grading import machine
from gpulab.tasks.command import command, console, print_json
from gpulab.tasks.render import STYLES, plain

SIGNS = {State.FINE: ("✓", "passed"), State.WRONG: ("✗", "failed"), State.UNKNOWN: ("?", "not-run")}


@command
def doctor(_: Context, stack: str = "", compatible: bool = False, json: bool = False) -> int:
    """Compare this machine with --stack (GPULAB_STACK, else current); exit code 2 if it differs.

    --compatible accepts a driver that is newer than the pinned one.
    """
    stacks = pins.load(find_root())
    name = stack or os.environ.get("GPULAB_STACK", "current")
    stacks.find(name)
    with console.status("looking at this machine"):
        facts = look(Live(), machine.attempt_python())
    findings = examine(stacks, name, facts, compatible=compatible)
    if json:
        print_json({"stack": name, "findings": [asdict(finding) for finding in findings]})
    else:
        console.print(f"stack {name}: {stacks.find(name).purpose}", markup=False)
        for finding in findings:
            console.print(_line(finding), soft_wrap=True)
    return 2 if any(finding.state is State.WRONG for finding in findings) else 0


def _line(finding: Finding) -> Text:
    sign, style = SIGNS[finding.state]
    line = Text(f"{sign} {finding.key}: {plain(finding.seen)}", style=STYLES[style])
    if finding.remedy:
        line.append(f"\n    {finding.remedy}", style="default")
    return line
