"""The table of attacks: print it, or write it into docs/threat-model.md.

python tests/red_team/table.py [--write]
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from attack_list import HERE, Attack, Ending, Local, attacks

PAGE = HERE.parents[1] / "docs" / "threat-model.md"
BEGIN, END = "<!-- attacks: begin -->\n", "<!-- attacks: end -->\n"


def table() -> str:
    """All attacks, by what they go for, with the counts."""
    return "\n".join([*_summary(), "", *_rows(), ""])


def current() -> str:
    """What the page holds."""
    return PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]


def write(page: Path = PAGE) -> None:
    """Put the table into the page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}{table()}{END}{after}", encoding="utf-8")


def _summary() -> Iterator[str]:
    known = attacks().values()
    wins = sum(Ending.FIXED in attack.isolated for attack in known)
    yield f"{len(known)} attacks, each over a wrong submission."
    yield f"`isolated`: {len(known) - wins} stopped, {wins} that cannot be."
    counts = Counter(attack.local for attack in known)
    yield "`local`: " + ", ".join(f"{counts[kind]} {_COUNTED[kind]}" for kind in Local) + "."


_COUNTED = {
    Local.STOPPED: "stopped",
    Local.FORGES: "forge the verdict",
    Local.READS: "read what is hidden",
    Local.HARMS: "harm the machine",
    Local.NOT_RUN: "not run",
}


def _rows() -> Iterator[str]:
    yield "| attack | what it does | `isolated` | `local` |"
    yield "| --- | --- | --- | --- |"
    for kind, group in groupby(attacks().items(), key=lambda item: item[1].kind):
        yield f"| **{kind}** | | | |"
        for name, attack in group:
            yield f"| {name} | {attack.about} | {_isolated(attack)} | {_local(attack)} |"


def _isolated(attack: Attack) -> str:
    if Ending.FIXED in attack.isolated:
        return f"**wins**: {attack.since}"
    return " or ".join(attack.isolated)


def _local(attack: Attack) -> str:
    if attack.local is Local.NOT_RUN:
        return f"not run: {attack.since}"
    return attack.local if attack.local is Local.STOPPED else f"**{attack.local}**"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Print the table of attacks.")
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.name}")
    if parser.parse_args().write:
        write()
    else:
        print(table())
