"""The map: five primitives across, the seven layers under a training loop down."""

from gpulab.map.board import LAYERS, PRIMITIVES, Board, Cell, Place
from gpulab.map.errors import Answer, Family, find, load_families

__all__ = [
    "LAYERS",
    "PRIMITIVES",
    "Answer",
    "Board",
    "Cell",
    "Family",
    "Place",
    "find",
    "load_families",
]
