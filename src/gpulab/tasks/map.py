"""`map`: where everything has its place, and which place an error message asks about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from invoke import Context
from rich import box
from rich.table import Table
from rich.text import Text

from gpulab.catalogue import Exercise
from gpulab.claims import Claim, load_all
from gpulab.map import LAYERS, PRIMITIVES, Answer, Board, Place, find, load_families, picture
from gpulab.model import LabError, in_language
from gpulab.tasks.command import Bench, command, console, print_json, say
from gpulab.tasks.render import STYLES

SIGNS = {"fixed": "✓", "not-fixed": "✗", "undecided": "?", "open": "·"}


@command
def map_(_: Context, error: str = "", svg: str = "", json: bool = False) -> int:
    """Draw the map: five primitives, seven layers, the exercises in their places.

    --error "TEXT" says which place a message asks about; --svg FILE writes the picture.
    """
    bench = Bench.here()
    if error:
        return _answer(bench, error, json=json)
    board = Board(bench.catalogue, load_all().values(), bench.grader.progress().best)
    if svg:
        _write(Path(svg), board, bench.language)
    if json:
        print_json([_cell(board, place, bench.language) for place, _ in board])
    elif not svg:
        _draw(board, bench.language)
    return 0


def _write(path: Path, board: Board, language: str) -> None:
    if path.suffix.lower() != ".svg":
        raise LabError(f"{path} must end in .svg.")
    try:
        path.write_text(picture.draw(board, language), encoding="utf-8")
    except OSError as error:
        raise LabError(f"{path} cannot be written ({error.strerror}).") from None
    say(str(path))


def _cell(board: Board, place: Place, language: str) -> dict[str, Any]:
    cell = board[place]
    return {
        "primitive": place.primitive.value,
        "layer": place.layer.value,
        "exercises": [
            {
                "exercise": exercise.name,
                "title": in_language(exercise.facts.title, language),
                "state": board.state(exercise),
            }
            for exercise in cell.exercises
        ],
        "claims": cell.claims,
    }


def _draw(board: Board, language: str) -> None:
    table = Table(box=box.HORIZONTALS, pad_edge=False, show_lines=True)
    table.add_column("", no_wrap=True)
    for names in PRIMITIVES.values():
        heading = in_language(names, language).replace(".F", ".\nF").replace(" ", "\n")
        table.add_column(heading, min_width=6, vertical="bottom")
    for layer, names in LAYERS.items():
        cells = [_marks(board, Place(primitive, layer)) for primitive in PRIMITIVES]
        table.add_row(in_language(names, language), *cells)
    console.print(table)
    say(f"{board.fixed} of {len(board.exercises)} exercises fixed")
    for exercise in board.exercises:
        console.print(_line(board, exercise, language), soft_wrap=True)


def _marks(board: Board, place: Place) -> Text:
    marks = [
        Text(f"{exercise.number}{SIGNS[board.state(exercise)]}", style=_style(board, exercise))
        for exercise in board[place].exercises
    ]
    return Text(" ").join(marks)


def _style(board: Board, exercise: Exercise) -> str:
    return STYLES.get(board.state(exercise), "default")


def _line(board: Board, exercise: Exercise, language: str) -> Text:
    title = in_language(exercise.facts.title, language)
    mark = f"{SIGNS[board.state(exercise)]} {exercise.number:>2}"
    return Text.assemble((mark, _style(board, exercise)), f"  {title}")


def _answer(bench: Bench, text: str, *, json: bool) -> int:
    answers = find(text, load_families(), bench.catalogue)
    if not answers:
        raise LabError(
            "This text has no place on the map; give the last line of the traceback, as it stands."
        )
    claims = load_all()
    if json:
        print_json([_found(answer, bench.language) for answer in answers])
        return 0
    for answer in answers:
        _tell(answer, claims, bench.language)
    return 0


def _found(answer: Answer, language: str) -> dict[str, Any]:
    return {
        "primitive": answer.place.primitive.value,
        "layer": answer.place.layer.value,
        "sure": answer.sure,
        "question": answer.question and in_language(answer.question, language),
        "exercises": [exercise.name for exercise in answer.exercises],
        "shown_by": [exercise.name for exercise in answer.exercises[: answer.shown_by]],
        "claims": list(answer.claims),
    }


def _tell(answer: Answer, claims: dict[int, Claim], language: str) -> None:
    place = answer.place
    primitive = in_language(PRIMITIVES[place.primitive], language)
    layer = in_language(LAYERS[place.layer], language)
    head = "" if answer.sure else "No message of this kind is known; the nearest one asks: "
    console.print(
        Text(f"{head}{primitive} \N{MULTIPLICATION SIGN} {layer}", style="bold"), soft_wrap=True
    )
    if answer.question:
        say(f"  {in_language(answer.question, language)}")
    for index, exercise in enumerate(answer.exercises):
        title = in_language(exercise.facts.title, language)
        near = "" if index < answer.shown_by else "  (the same place)"
        say(f"  {exercise.name}: {title}{near}")
    for number in answer.claims:
        claim = claims[number]
        more = "" if claim.lesson == "As claimed." else f" → {claim.lesson}"
        say(f"  claim {number} ({claim.truth}): {claim.said}{more}")
