"""The exercises: numbered folders with a brief, hints and a broken script."""

from __future__ import annotations

import difflib
import math
import os
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from gpulab import tables
from gpulab.catalogue import texts
from gpulab.model import LabError, Languages

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = re.compile(r"exercise-([1-9][0-9]{0,2})")
SCRIPT = re.compile(r"[A-Za-z_]\w*\.py")
LAB_FILES = ("exercise.toml", "hints.md", "hints.zh.md")
"""What is in an exercise's folder and not copied to the attendee's."""


class Primitive(StrEnum):
    """The five primitives of the map."""

    TENSOR = "tensor"
    MODULE = "module"
    FUNCTION = "function"
    DATALOADER = "dataloader"
    OPTIMIZER = "optimizer"


class Layer(StrEnum):
    """The seven layers under a training loop."""

    PYTHON = "python"
    WORKERS = "workers"
    MEMORY = "memory"
    TRANSFER = "transfer"
    GRAPH = "graph"
    AUTOGRAD = "autograd"
    UPDATE = "update"


class DeviceNeed(StrEnum):
    """What an exercise needs to be shown: nothing, `cuda` (a rehearsal will do), a real GPU."""

    ANY = "any"
    CUDA = "cuda"
    GPU = "gpu"


class Start(StrEnum):
    """Whether an attempt may start in a process that has torch imported already."""

    WARM = "warm"
    COLD = "cold"


@dataclass(frozen=True)
class Needs:
    """What the machine must offer."""

    device: DeviceNeed
    torch: str


@dataclass(frozen=True)
class Facts:
    """exercise.toml; `seconds` and the two sizes bound one attempt, `errors` are its messages."""

    script: str
    primitive: Primitive
    layer: Layer
    level: int
    minutes: int
    title: Languages
    needs: Needs
    sets: tuple[str, ...] = ()
    start: Start = Start.WARM
    seconds: float = 60.0
    memory_mib: int | None = None
    shm_mib: int | None = None
    errors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exercise:
    """One exercise: its number, its folder and its facts."""

    number: int
    folder: Path
    facts: Facts

    @property
    def name(self) -> str:
        """`exercise-4`."""
        return f"exercise-{self.number}"

    def brief(self, language: str) -> str:
        """The brief, as Markdown."""
        return texts.read(self.folder, "README", language)

    def hints(self, language: str) -> tuple[str, ...]:
        """The three hints, as Markdown, from where to look to what to change."""
        return texts.sections(self.folder, "hints", language, count=3)

    def shipped_files(self) -> list[Path]:
        """Files that attendees get, relative to the folder, sorted."""
        return sorted(
            path.relative_to(self.folder)
            for path in self.folder.rglob("*")
            if path.is_file() and path.name not in LAB_FILES and "__pycache__" not in path.parts
        )


def _load(folder: Path, number: int) -> Exercise:
    facts = tables.read(folder / "exercise.toml", Facts)
    exercise = Exercise(number, folder, facts)
    _check_facts(facts, folder / "exercise.toml")
    if not (folder / facts.script).is_file():
        raise LabError(
            f"{folder / facts.script} is missing; add it or mend `script` in exercise.toml."
        )
    for language in texts.LANGUAGES:
        exercise.brief(language)
        exercise.hints(language)
    return exercise


def _check_facts(facts: Facts, where: Path) -> None:
    texts.check_languages(facts.title, f"{where}: `title`")
    if SCRIPT.fullmatch(facts.script) is None:
        raise LabError(f"{where}: `script` must be a plain name such as train.py.")
    if facts.level not in (1, 2, 3):
        raise LabError(f"{where}: `level` must be 1, 2 or 3, not {facts.level}.")
    for name in ("minutes", "seconds", "memory_mib", "shm_mib"):
        value = getattr(facts, name)
        if value is not None and not 0 < value < math.inf:
            raise LabError(f"{where}: `{name}` must be more than 0, not {value}.")
    try:
        SpecifierSet(facts.needs.torch)
    except InvalidSpecifier:
        raise LabError(
            f"{where}: `needs.torch` is no version range: {facts.needs.torch!r}; write >=2.0."
        ) from None


def find_root() -> Path:
    """The folder that holds `exercises/`: GPULAB_ROOT, here or above, or the checkout.

    Raises:
        LabError: there is none.
    """
    if configured := os.environ.get("GPULAB_ROOT"):
        if (Path(configured) / "exercises").is_dir():
            return Path(configured).resolve()
        raise LabError(f"GPULAB_ROOT is {configured}, which has no exercises/ folder; correct it.")
    here = Path.cwd()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[3]):
        if (folder / "exercises").is_dir() and (folder / "tasks.py").is_file():
            return folder
    raise LabError("No exercises/ folder here or above; change into the lab's folder.")


class Catalogue:
    """All exercises below a root folder, in order."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def free_number(self) -> int:
        """The number of the next exercise."""
        return max(self._folders, default=0) + 1

    @cached_property
    def _folders(self) -> dict[int, Path]:
        home = self.root / "exercises"
        if not home.is_dir():
            raise LabError(f"{home} is missing; run inside the lab's folder.")
        found: dict[int, Path] = {}
        for path in sorted(home.iterdir()):
            if path.name.startswith(".") or path.name == "__pycache__":
                continue
            match = FOLDER.fullmatch(path.name)
            if match is None or not path.is_dir():
                raise LabError(f"{path} is no exercise; name it exercise-N or move it away.")
            found[int(match[1])] = path
        return dict(sorted(found.items()))

    def __iter__(self) -> Iterator[Exercise]:
        return (_load(folder, number) for number, folder in self._folders.items())

    def find(self, name: str) -> Exercise:
        """The exercise that `name` means: `4`, `exercise-4`.

        Raises:
            LabError: unknown; the message names the nearest.
        """
        known = {f"exercise-{number}": number for number in self._folders}
        wanted = name.strip().lower().replace("_", "-")
        if wanted.isdecimal():
            wanted = f"exercise-{int(wanted)}"
        if wanted in known:
            return _load(self._folders[known[wanted]], known[wanted])
        close = difflib.get_close_matches(wanted, list(known), n=1)
        advice = f"did you mean {close[0]}?" if close else "`invoke list` shows them all."
        raise LabError(f"There is no exercise {name!r}; {advice}")
