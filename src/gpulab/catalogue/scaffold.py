"""The two folders of a new exercise, to be finished by its author."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from gpulab.catalogue.exercises import Catalogue
from gpulab.model import LabError

TEMPLATE = Path(__file__).with_name("template")


def scaffold(catalogue: Catalogue, title: str) -> tuple[Path, Path]:
    """Make `exercises/exercise-N` and `checks/exercise-N` with the next free number.

    Every file that the author must write says UNFINISHED, which `exercise.verify` refuses.

    Raises:
        LabError: no title, or the folders cannot be made.
    """
    title = " ".join("".join(c if c.isprintable() else " " for c in title).split())
    if not title or title.startswith("-"):  # an option that was taken for a title
        raise LabError("Give the exercise a title that names its symptom: --title '...'.")
    name = f"exercise-{catalogue.free_number}"
    exercise, checks = catalogue.root / "exercises" / name, catalogue.root / "checks" / name
    made: list[Path] = []
    try:
        for source, target in ((TEMPLATE / "exercise", exercise), (TEMPLATE / "checks", checks)):
            target.mkdir(parents=True)
            made.append(target)
            shutil.copytree(source, target, dirs_exist_ok=True)
        facts = exercise / "exercise.toml"
        text = facts.read_text("utf-8").replace("TITLE", json.dumps(title, ensure_ascii=False))
        facts.write_text(text, encoding="utf-8")
    except OSError as error:
        for target in made:  # both folders, or none
            shutil.rmtree(target, ignore_errors=True)
        where, why = error.filename or checks.parent, error.strerror or error
        raise LabError(f"{where}: {why}; mend that and try again.") from None
    return exercise, checks
