"""The map as SVG."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from gpulab.map.board import LAYERS, PRIMITIVES, Board, Cell, Place
from gpulab.model import in_language

LEFT, TOP, WIDE, HIGH, GAP = 170, 92, 168, 64, 6  # pixels: heads of rows and columns, a cell
CHIP, CHIPS_A_ROW = 34, 4
PAPER, INK, FAINT, LINE, EMPTY = "#ffffff", "#1f2933", "#7b8794", "#cbd2d9", "#f5f7fa"
FILLS = {
    "fixed": ("#2f855a", "#ffffff"),
    "not-fixed": ("#c53030", "#ffffff"),
    "undecided": ("#d69e2e", "#1f2933"),
    "open": ("#ffffff", "#1f2933"),
}


def draw(board: Board, language: str) -> str:
    """The whole picture; an exercise's title shows where the pointer rests on it."""
    width = LEFT + len(PRIMITIVES) * (WIDE + GAP) + 12
    height = TOP + len(LAYERS) * (HIGH + GAP) + 44
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif">'
        ),
        f'<rect width="{width}" height="{height}" fill="{PAPER}"/>',
        _text(12, 32, "Five primitives, seven layers", size=20),
        _text(12, 54, f"{board.fixed} of {len(board.exercises)} exercises fixed", fill=FAINT),
    ]
    for column, names in enumerate(PRIMITIVES.values()):
        middle = _x(column) + WIDE // 2
        parts.append(_text(middle, TOP - 10, in_language(names, language), anchor="middle"))
    for row, names in enumerate(LAYERS.values()):
        parts.append(_text(12, _y(row) + HIGH // 2 + 5, in_language(names, language)))
    for place, cell in board:
        parts += _cell(board, place, cell, language)
    parts += _legend(height - 20)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _x(column: int) -> int:
    return LEFT + column * (WIDE + GAP)


def _y(row: int) -> int:
    return TOP + row * (HIGH + GAP)


def _cell(board: Board, place: Place, cell: Cell, language: str) -> list[str]:
    x, y = _x(list(PRIMITIVES).index(place.primitive)), _y(list(LAYERS).index(place.layer))
    fill = PAPER if cell.exercises else EMPTY
    parts = [
        (
            f'<rect x="{x}" y="{y}" width="{WIDE}" height="{HIGH}" rx="6" fill="{fill}" '
            f'stroke="{LINE}"/>'
        )
    ]
    if cell.claims:
        said = f"{len(cell.claims)} claim{'s' * (len(cell.claims) > 1)}"
        parts.append(_text(x + WIDE - 8, y + HIGH - 7, said, size=10, fill=FAINT, anchor="end"))
    for index, exercise in enumerate(cell.exercises):
        left = x + 8 + index % CHIPS_A_ROW * (CHIP + 5)
        top = y + 7 + index // CHIPS_A_ROW * 25
        title = in_language(exercise.facts.title, language)
        parts.append(_chip(left, top, str(exercise.number), board.state(exercise), title))
    return parts


def _chip(x: int, y: int, number: str, state: str, title: str) -> str:
    fill, ink = FILLS[state]
    return (
        f"<g><title>{escape(f'exercise-{number}, {state}: {title}')}</title>"
        f'<rect x="{x}" y="{y}" width="{CHIP}" height="21" rx="10" fill="{fill}" stroke="{INK}"/>'
        f"{_text(x + CHIP // 2, y + 15, number, size=12, fill=ink, anchor='middle')}</g>"
    )


def _legend(y: int) -> list[str]:
    parts = []
    for index, (state, (fill, _)) in enumerate(FILLS.items()):
        x = LEFT + index * 120
        box = f'<rect x="{x}" y="{y - 11}" width="22" height="13" rx="6" fill="{fill}" '
        parts += [f'{box}stroke="{INK}"/>', _text(x + 30, y, state, size=12, fill=FAINT)]
    return parts


def _text(
    x: int, y: int, said: str, *, size: int = 13, fill: str = INK, anchor: str = "start"
) -> str:
    place = f'x="{x}" y="{y}" font-size="{size}" fill="{fill}" text-anchor={quoteattr(anchor)}'
    return f"<text {place}>{escape(said)}</text>"
