"""Command line of the conformance suite."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from gpulab.rehearsal import launch
from gpulab.rehearsal.conformance.finding import Finding
from gpulab.rehearsal.conformance.suite import Suite, count, differences

_MEANING = {
    "values": "as expected",
    "random": "random or uninitialised by definition, judged on shape and dtype",
    "refused": "refused by name",
    "none": "nothing to compare with on the CPU",
    "wrong": "wrong",
    "crash": "crashed or hung",
}


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m gpulab.rehearsal.conformance")
    parser.add_argument("--device", choices=("rehearsal", "cuda"), default="rehearsal")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every finding there")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="one slice of the operators")
    arguments = parser.parse_args(argv)
    try:
        arguments.part, arguments.parts = map(int, arguments.part.split("/"))
    except ValueError:
        parser.error(f"--part {arguments.part}: write it like 1/4")
    if not 1 <= arguments.part <= arguments.parts:
        parser.error(f"--part {arguments.part}/{arguments.parts}: the first is 1/{arguments.parts}")
    return arguments


def _show(device: str, findings: list[Finding]) -> None:
    compared = " (never compared with a GPU)" if device == "rehearsal" else ""
    print(f"conformance on {device}{compared}")
    for part, outcomes in count(findings).items():
        print(f"{part}: {sum(outcomes.values())}")
        for outcome, meaning in _MEANING.items():
            if outcome in outcomes:
                print(f"  {outcomes[outcome]:5} {meaning}")
    for finding in findings:
        if finding.detail:
            print(f"{finding.outcome}: {finding.name}: {finding.detail}")


def main(argv: list[str]) -> int:
    """Run the suite; return 0 when all is well, 2 when something is not, 1 when it cannot run."""
    arguments = _arguments(argv)
    if arguments.device == "rehearsal":
        complaint = launch.availability(Path(sys.executable))
        if complaint is not None:
            print(complaint, file=sys.stderr)
            return 1
    findings = list(Suite(arguments.device).everything(arguments.part, arguments.parts))
    _show(arguments.device, findings)
    if arguments.json:
        document = {"device": arguments.device, "findings": [asdict(f) for f in findings]}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n")
    return 2 if differences(findings) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
