"""tour.md as scenes and steps.

## Scene
### Title of a step (8 s, claims 5, 6)
What is said about it.
```python
code, of which the last expression is shown
```
```text
what it shows, `...` for anything
```
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from gpulab.catalogue import texts
from gpulab.model import LabError

HOME = Path(__file__).parent
HEAD = re.compile(r"### (?P<title>.+) \((?P<seconds>\d+) s(, claims? (?P<claims>[\d, ]+))?\)")
STEP = re.compile(
    r"\n*(?P<said>.+?)\n+```python\n(?P<code>.+?)```\n+```text\n(?P<shown>.*?)```\s*", re.DOTALL
)


@dataclass(frozen=True)
class Step:
    """One statement with the code that shows it.

    Attributes:
        seconds: for reading it.
        claims: rows of docs/claims.md that it answers.
        said: Markdown.
        shown: the output to expect; `...` stands for anything.
    """

    title: str
    seconds: int
    claims: tuple[int, ...]
    said: str
    code: str
    shown: str


@dataclass(frozen=True)
class Scene:
    """Steps on one subject."""

    title: str
    steps: tuple[Step, ...]

    @property
    def seconds(self) -> int:
        """For all of it."""
        return sum(step.seconds for step in self.steps)


def load(language: str, home: Path = HOME) -> list[Scene]:
    """The tour in `language`, in English where there is no translation.

    Raises:
        LabError: the source does not have the form above; the message names the place.
    """
    _, *parts = re.split(r"(?m)^## ", texts.read(home, "tour", language))
    return [_scene(part) for part in parts]


def _scene(text: str) -> Scene:
    title, *parts = re.split(r"(?m)^(?=### )", text)
    return Scene(title.strip(), tuple(_step(part) for part in parts))


def _step(text: str) -> Step:
    head, _, body = text.partition("\n")
    matched, parts = HEAD.fullmatch(head), STEP.fullmatch(body)
    if matched is None or parts is None:
        raise LabError(f"tour.md, `{head}`: write it as src/gpulab/tour/source.py shows.", code=4)
    return Step(
        title=matched["title"],
        seconds=int(matched["seconds"]),
        claims=tuple(int(number) for number in re.findall(r"\d+", matched["claims"] or "")),
        said=parts["said"],
        code=parts["code"],
        shown=parts["shown"],
    )
