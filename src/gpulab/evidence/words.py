"""Turn what a check said into messages in every language."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gpulab.evidence.report import Said
from gpulab.model import Languages, Message

LONGEST = 4000  # characters of a message: what an attempt said may be part of it


@cache
def lab_texts() -> dict[str, Languages]:
    """The lab's own messages by key."""
    text = Path(__file__).with_name("messages.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def message(said: Said, texts: Mapping[str, Languages]) -> Message:
    """Fill `said` in from an exercise's texts, or from the lab's own.

    Raises:
        KeyError: no such key, or a value that the text needs was not given.
    """
    languages = texts.get(said.key) or lab_texts()[said.key]
    filled = {code: text.format(**said.values) for code, text in languages.items()}
    return Message(said.key, {code: text[:LONGEST] for code, text in filled.items()})


def lab_message(key: str, **values: Any) -> Message:
    """One of the lab's own messages."""
    return message(Said(key, values), {})
