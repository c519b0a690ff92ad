"""Texts by language: `README.md` is English, `README.zh.md` Chinese."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from gpulab.model import LabError, Languages

if TYPE_CHECKING:
    from pathlib import Path

LANGUAGES = ("en", "zh")


def chosen_language() -> str:
    """The language of GPULAB_LANG, else of the locale; English where it is none of ours."""
    for variable in ("GPULAB_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(variable):
            code = re.split(r"[_.@-]", value.lower())[0]
            return code if code in LANGUAGES else "en"
    return "en"


def check_languages(said: Languages, where: str) -> None:
    """Refuse a text without English, or in a language that the lab does not know.

    Raises:
        LabError: it begins with `where`.
    """
    if "en" not in said:
        raise LabError(f"{where} has no English text; add `en`.")
    for code in said:
        if code not in LANGUAGES:
            raise LabError(f"{where}: unknown language `{code}`; use {' or '.join(LANGUAGES)}.")


def read(folder: Path, stem: str, language: str) -> str:
    """The text `stem` of `folder` in `language`, or in English where there is no translation.

    Raises:
        LabError: there is no English text either, it cannot be read, or it is empty.
    """
    path = folder / f"{stem}.{language}.md"
    if language == "en" or not path.is_file():
        path = folder / f"{stem}.md"
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(
            f"{path} cannot be read ({error}); add it after docs/authoring.md."
        ) from None
    if not text:
        raise LabError(f"{path} is empty; write it after docs/authoring.md.")
    return text + "\n"


def sections(folder: Path, stem: str, language: str, *, count: int) -> tuple[str, ...]:
    """The `## ` sections of a text, headings left out.

    Raises:
        LabError: there are not exactly `count`.
    """
    text = read(folder, stem, language)
    parts = [part.strip() for part in re.split(r"(?m)^## .*$", text)[1:]]
    if len(parts) != count or not all(parts):
        raise LabError(
            f"{folder / stem}.md ({language}) must have {count} sections under `## ` headings, "
            f"none empty; it has {len([p for p in parts if p])}."
        )
    return tuple(parts)
