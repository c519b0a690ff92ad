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
    title = " ".join(title.split())
    if not title:
        raise LabError("Give the exercise a title that names its symptom: --title '...'.")
    number = max((exercise.number for exercise in catalogue), default=0) + 1
    exercise = catalogue.root / "exercises" / f"exercise-{number}"
    checks = catalogue.root / "checks" / f"exercise-{number}"
    try:
        shutil.copytree(TEMPLATE / "exercise", exercise)
        shutil.copytree(TEMPLATE / "checks", checks)
        facts = exercise / "exercise.toml"
        text = facts.read_text(encoding="utf-8").replace("TITLE", json.dumps(title))
        facts.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LabError(f"{error.filename}: {error.strerror}; mend that and try again.") from None
    return exercise, checks
