"""One judgement of the conformance suite."""

import json
from dataclasses import asdict, dataclass

GOOD = ("values", "random", "refused", "none")
"""Outcomes that are as they should be; the others are `wrong` and `crash`."""


@dataclass(frozen=True)
class Finding:
    """What became of one operator, model or case.

    Attributes:
        part: `operators`, `models` or `cases`.
        outcome: `values` (the CPU's values, or what is expected), `random` (random or uninitialised
            by definition, judged on shape and dtype), `refused` (by name), `none` (the
            CPU has nothing to compare with), `wrong`, or `crash` (its process died or hung).
        detail: One line, for the last four.
    """

    part: str
    name: str
    outcome: str
    detail: str = ""

    def line(self) -> str:
        """Return it as one line of JSON."""
        return json.dumps(asdict(self))


def one_line(error: BaseException) -> str:
    """Return an error's type and first line."""
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first[:200]}"
