"""The hidden side of an exercise: check.toml, solutions, wrong fixes."""

from __future__ import annotations

import ast
import string
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from gpulab import tables
from gpulab.catalogue import texts
from gpulab.catalogue.exercises import Exercise
from gpulab.model import Device, LabError, Languages

FILES = {"check.toml", "test_fix.py", "probe.py", "debrief.md", "debrief.zh.md"}
FOLDERS = {"solutions", "wrong_fixes", "__pycache__"}


@dataclass(frozen=True)
class Failure:
    """The check that must fail, and why: the rationale's key."""

    check: str
    rationale: str


@dataclass(frozen=True)
class Solution:
    """A cure that must be accepted; `remark` is the key of the remark that it earns."""

    about: str
    remark: str | None = None


@dataclass(frozen=True, kw_only=True)
class WrongFix(Failure):
    """A plausible non-cure that must be refused, on `devices` only where it says so."""

    about: str
    devices: tuple[Device, ...] = ()


@dataclass(frozen=True)
class CheckTable:
    """check.toml."""

    reference: str
    pitfall: Languages
    shipped: Failure
    solutions: dict[str, Solution]
    wrong_fixes: dict[str, WrongFix]
    titles: dict[str, Languages] = field(default_factory=dict)
    rationales: dict[str, Languages] = field(default_factory=dict)
    remarks: dict[str, Languages] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckFile:
    """The folder `checks/exercise-N/` and its table."""

    exercise: Exercise
    folder: Path
    table: CheckTable

    @property
    def test_file(self) -> Path:
        """The hidden pytest file."""
        return self.folder / "test_fix.py"

    @property
    def reference(self) -> Path:
        """The folder of the solution that trusted attempts run."""
        return self.folder / "solutions" / self.table.reference

    def debrief(self, language: str) -> str:
        """The debrief, as Markdown."""
        return texts.read(self.folder, "debrief", language)

    @cached_property
    def titles(self) -> dict[str, Languages]:
        """The checks' titles in the order of the file, by the name of the pytest function.

        Raises:
            LabError: a check has no docstring, or there are no checks.
        """
        titles: dict[str, Languages] = {}
        for node in _parse(self.test_file).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                docstring = ast.get_docstring(node)
                if not docstring:
                    raise LabError(f"{self.test_file}: {node.name} has no docstring, its title.")
                english = {"en": " ".join(docstring.split()).removesuffix(".")}
                titles[node.name] = english | self.table.titles.get(node.name, {})
        if not titles:
            raise LabError(f"{self.test_file} has no check; write one after docs/authoring.md.")
        return titles


def _parse(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError) as error:
        raise LabError(f"{path} cannot be read ({error}); mend it.") from None


def load_checks(root: Path, exercise: Exercise) -> CheckFile:
    """Read and validate `checks/exercise-N/`.

    Raises:
        LabError: something is missing, stray or does not fit; the message names it.
    """
    folder = root / "checks" / exercise.name
    if not folder.is_dir():
        raise LabError(f"{folder} is missing; an exercise needs its checks (docs/authoring.md).")
    checks = CheckFile(exercise, folder, tables.read(folder / "check.toml", CheckTable))
    _refuse_strays(folder)
    _match_variants(folder / "solutions", checks.table.solutions)
    _match_variants(folder / "wrong_fixes", checks.table.wrong_fixes)
    _resolve_names(checks)
    for language in texts.LANGUAGES:
        checks.debrief(language)
    return checks


def _refuse_strays(folder: Path) -> None:
    for path in folder.iterdir():
        known = FOLDERS if path.is_dir() else FILES
        if path.name not in known:
            raise LabError(f"{path} does not belong there; move it away or rename it.")


def _match_variants(home: Path, named: dict[str, Solution] | dict[str, WrongFix]) -> None:
    found = {path.name for path in home.iterdir()} if home.is_dir() else set()
    toml = home.parent / "check.toml"
    for name in sorted(found - named.keys()):
        raise LabError(f"{home / name} is not in {toml}; add [{home.name}.{name}] or remove it.")
    for name in sorted(named.keys() - found):
        raise LabError(f"{home / name} is missing, though {toml} names it; add it or remove it.")


def _resolve_names(checks: CheckFile) -> None:
    table, toml = checks.table, checks.folder / "check.toml"
    if table.reference not in table.solutions:
        raise LabError(f"{toml}: `reference` is {table.reference!r}, which is no solution.")
    for failure in (table.shipped, *table.wrong_fixes.values()):
        if failure.check not in checks.titles:
            raise LabError(f"{toml}: there is no check {failure.check!r} in test_fix.py.")
    for name in table.titles:
        if name not in checks.titles:
            raise LabError(f"{toml}: title for {name!r}, which is no check in test_fix.py.")
    _check_texts(table, toml)


def _check_texts(table: CheckTable, toml: Path) -> None:
    for name, solution in table.solutions.items():
        if solution.remark is not None and solution.remark not in table.remarks:
            raise LabError(f"{toml}: `solutions.{name}.remark` is no key of [remarks]; add it.")
    for name, title in table.titles.items():
        texts.check_languages({"en": name} | title, f"{toml}: `titles.{name}`")
    for key, said in (table.rationales | table.remarks | {"pitfall": table.pitfall}).items():
        texts.check_languages(said, f"{toml}: {key!r}")
    for key, said in (table.rationales | table.remarks).items():
        for text in said.values():
            _check_template(text, f"{toml}: {key!r}")


def _check_template(text: str, where: str) -> None:
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    except ValueError as error:
        raise LabError(f"{where} has a brace without its partner ({error}); mend it.") from None
    for name in names:
        if not name.isidentifier():
            raise LabError(f"{where}: {{{name}}} is no name; write {{count}}, or {{{{ for a brace.")
