"""The attacks as attacks.toml lists them, and what each lays over a work folder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from gpulab import tables

HERE = Path(__file__).parent
BODIES = HERE / "bodies"
SPOILS = "spoils.py"
MAIN = '\n\nif __name__ == "__main__":'


class Kind(StrEnum):
    """What an attack goes for."""

    END = "an early end"
    TESTS = "the test framework"
    IMPORTS = "what is imported first"
    ANSWER = "the answer"
    MEASURE = "what is measured"
    SECRETS = "what is hidden"
    GRADER = "the grader"
    MACHINE = "the machine"
    TERMINAL = "the reader of the verdict"


class Ending(StrEnum):
    """What a check of a wrong submission may end with."""

    NOT_FIXED = "not-fixed"
    UNDECIDED = "undecided"
    REFUSED = "refused"
    FIXED = "fixed"  # the attack has won


class Local(StrEnum):
    """What the attack does at the level `local`."""

    STOPPED = "stopped"
    FORGES = "forges the verdict"
    READS = "reads what is hidden"
    HARMS = "harms the machine"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Attack:
    """One attack.

    Attributes:
        kind: what it goes for.
        about: what it does, for the table.
        body: put into the script before its last part; bodies/NAME.py where it is longer. The
            files of the folder bodies/NAME/ are laid beside it.
        on: the exercise that it is laid over: the target, the golden one, or a number.
        isolated: how a check of a wrong submission may end at the level `isolated`.
        local: what it does at the level `local`.
        right: how a check of a right submission may end; none where the attack spoils the work.
        since: why it cannot be stopped, or is not run at `local`.
    """

    kind: Kind
    about: str
    body: str = ""
    on: str = "target"
    isolated: tuple[Ending, ...] = (Ending.NOT_FIXED,)
    local: Local = Local.STOPPED
    right: tuple[Ending, ...] = ()
    since: str = ""


@dataclass(frozen=True)
class AttackList:
    """attacks.toml."""

    attacks: dict[str, Attack]


def attacks() -> dict[str, Attack]:
    """All attacks by name."""
    return tables.read(HERE / "attacks.toml", AttackList).attacks


def lay_over(work: Path, script: str, name: str, attack: Attack) -> None:
    """Put an attack into a work folder."""
    file, folder = BODIES / f"{name}.py", BODIES / name
    body = file.read_text(encoding="utf-8") if file.exists() else attack.body
    text = (work / script).read_text(encoding="utf-8")
    before, main, after = text.rpartition(MAIN)
    if not main:
        before, after = text, ""
    (work / script).write_text(f"{before}\n\n{body}{main}{after}", encoding="utf-8")
    if folder.is_dir():
        shutil.copytree(folder, work, dirs_exist_ok=True)
    shutil.copyfile(HERE / SPOILS, work / SPOILS)
