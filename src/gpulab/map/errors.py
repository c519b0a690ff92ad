"""Which place on the map an error message, or a symptom in words, belongs to.

Families of messages with their places are in errors.toml. An exercise belongs to a family when its
brief, or what it declares as `errors`, shows a message of that family: nothing has to be noted here
for a new exercise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from gpulab import tables
from gpulab.catalogue import Exercise, Layer, Primitive
from gpulab.map.board import Place, place_of
from gpulab.model import Languages

FILE = Path(__file__).with_name("errors.toml")
SHOWN = 3  # answers at most
NEAR = 0.5  # share of a known message's words that a text must have to be near it
FEWEST_WORDS = 3
QUOTES = str.maketrans("\u2018\u2019`\u201c\u201d", "'''\"\"")


@dataclass(frozen=True)
class Family:
    """Messages that ask the same question.

    Attributes:
        says: texts that they contain; `*` stands for anything up to 80 characters.
        question: what the message really asks.
        claims: rows of docs/claims.md that speak of it.
    """

    says: tuple[str, ...]
    primitive: Primitive
    layer: Layer
    question: Languages
    claims: tuple[int, ...] = ()

    @property
    def place(self) -> Place:
        """Where on the map."""
        return Place(self.primitive, self.layer)


@dataclass(frozen=True)
class Answer:
    """A place that a text belongs to.

    Attributes:
        question: None where only an exercise knows the text.
        sure: False where the text only resembles a known one.
        exercises: those that show this very message first, then those of the same place.
        shown_by: how many of them show it.
    """

    place: Place
    question: Languages | None
    claims: tuple[int, ...]
    sure: bool
    exercises: tuple[Exercise, ...]
    shown_by: int


@dataclass(frozen=True)
class _Families:
    family: tuple[Family, ...]


def load_families(path: Path = FILE) -> tuple[Family, ...]:
    """The families.

    Raises:
        LabError: the file does not fit.
    """
    return tables.read(path, _Families).family


def find(text: str, families: Iterable[Family], exercises: Iterable[Exercise]) -> list[Answer]:
    """The places that `text` belongs to, the most specific first; empty where none is known.

    `text` may be a whole traceback.
    """
    families, exercises = list(families), list(exercises)
    matched = _matched(text, families)
    if matched:
        answers = [_answer(family, exercises, families, sure=True) for family in matched]
        return answers[:SHOWN]
    showing = [e for e in exercises if _longest(text, shown_in(e).splitlines())]
    if showing:
        place = place_of(showing[0])
        return [Answer(place, None, (), True, tuple(showing), len(showing))]
    return [_answer(family, exercises, families, sure=False) for family in _near(text, families)]


def _answer(
    family: Family, exercises: list[Exercise], families: list[Family], *, sure: bool
) -> Answer:
    showing = [e for e in exercises if family in _matched(shown_in(e), families)]
    neighbours = [e for e in exercises if place_of(e) == family.place and e not in showing]
    found = (*showing, *neighbours)
    return Answer(family.place, family.question, family.claims, sure, found, len(showing))


def shown_in(exercise: Exercise) -> str:
    """The messages that an exercise shows: those in its brief, and those it declares."""
    lines = [line.strip() for line in exercise.brief("en").splitlines()]
    return "\n".join([*filter(_looks_like_a_message, lines), *exercise.facts.errors])


def _looks_like_a_message(line: str) -> bool:
    return re.search(r"\b\w*(Error|Exception|Warning)\b`?:", line) is not None


def _matched(text: str, families: list[Family]) -> list[Family]:
    """The families that the text holds a message of, the longest message first."""
    lengths = [(_longest(text, family.says), family) for family in families]
    found = [pair for pair in lengths if pair[0]]
    return [family for _, family in sorted(found, key=lambda pair: -pair[0])]


def _longest(text: str, patterns: Iterable[str]) -> int:
    """The length of the longest pattern that the text holds, or begins to say; 0 for none."""
    plain, begun = _plain(text), _beginning(text)
    held = (len(p) for p in patterns if _expression(p).search(plain))
    cut = (len(begun) for p in patterns if begun and _plain(p).startswith(begun))
    return max(*held, *cut, 0, 0)


def _beginning(text: str) -> str:
    """What is left of a message that was cut short, without the exception's name; "" if little."""
    said = re.sub(r"^[\w.]*(error|exception|warning): ", "", _plain(text))
    begun = said.rstrip(".\u2026 ")
    return begun if len(begun.split()) >= FEWEST_WORDS else ""


@lru_cache(maxsize=1024)
def _expression(pattern: str) -> re.Pattern[str]:
    parts = [re.escape(part) for part in _plain(pattern).split("*")]
    start = r"(?<!\w)" if parts[0][:1].isalnum() else ""
    return re.compile(start + ".{0,80}?".join(parts))


def _plain(text: str) -> str:
    """Lower case, one kind of quote, none of the line breaks that a terminal or a form adds."""
    return " ".join(text.translate(QUOTES).lower().split())


def _near(text: str, families: list[Family]) -> list[Family]:
    """The family with the known message that most of its words are in the text, if any is near."""
    words = _words(text)
    best, nearest = NEAR, None
    for family in families:
        for said in family.says:
            known = _words(said)
            share = len(known & words) / len(known) if len(known) >= FEWEST_WORDS else 0.0
            if share > best:
                best, nearest = share, family
    return [nearest] if nearest else []


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z_]{3,}", _plain(text)))
