"""One process of the suite: judges some operators, the models, or one group of cases.

`python -m gpulab.rehearsal.conformance.child PART [ARGUMENT...]`; findings are lines of JSON on
stdout. Before an operator its index is printed, so that a crash has a name.
"""

import sys
import warnings
from collections.abc import Iterator

from gpulab.rehearsal.conformance import cases, models
from gpulab.rehearsal.conformance.finding import Finding


def judge_operators(indices: list[int]) -> Iterator[Finding]:
    """Judge the operators at these places of the database."""
    from gpulab.rehearsal.conformance import operators  # noqa: PLC0415 - slow to import

    for index in indices:
        print(index, flush=True)
        yield operators.judge(index)


def print_names() -> None:
    """Print the operators' names, one a line."""
    from gpulab.rehearsal.conformance import operators  # noqa: PLC0415 - slow to import

    print("\n".join(operators.names()))


def main(part: str, *arguments: str) -> None:
    """Print the findings of one part."""
    warnings.simplefilter("ignore")  # torch's remarks on samples of its own
    if part == "names":
        print_names()
        return
    if part == "operators":
        findings = judge_operators([int(argument) for argument in arguments])
    elif part == "models":
        findings = models.judge_all()
    else:
        findings = cases.judge(*arguments)
    for finding in findings:
        print(finding.line(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
