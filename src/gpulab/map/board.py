"""The places of the map, and which exercises and claims live there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gpulab.catalogue import Exercise, Layer, Primitive
from gpulab.claims import Claim
from gpulab.model import Languages, Verdict

PRIMITIVES: dict[Primitive, Languages] = {
    Primitive.TENSOR: {"en": "Tensor", "zh": "Tensor 张量"},
    Primitive.MODULE: {"en": "nn.Module", "zh": "nn.Module 模块"},
    Primitive.FUNCTION: {"en": "autograd.Function", "zh": "autograd.Function 函数"},
    Primitive.DATALOADER: {"en": "DataLoader", "zh": "DataLoader 数据加载"},
    Primitive.OPTIMIZER: {"en": "Optimizer", "zh": "Optimizer 优化器"},
}
LAYERS: dict[Layer, Languages] = {
    Layer.PYTHON: {"en": "Python iteration", "zh": "Python 循环"},
    Layer.WORKERS: {"en": "loader workers", "zh": "加载进程"},
    Layer.MEMORY: {"en": "memory and pinning", "zh": "内存与锁页"},
    Layer.TRANSFER: {"en": "moving to the device", "zh": "搬到设备"},
    Layer.GRAPH: {"en": "building the graph", "zh": "建立计算图"},
    Layer.AUTOGRAD: {"en": "running autograd", "zh": "反向传播"},
    Layer.UPDATE: {"en": "the update", "zh": "参数更新"},
}
"""From the line of Python down to the new weights."""


@dataclass(frozen=True)
class Place:
    """Where a line of code or an error message belongs."""

    primitive: Primitive
    layer: Layer


@dataclass
class Cell:
    """What lives in one place."""

    exercises: list[Exercise] = field(default_factory=list)
    claims: list[int] = field(default_factory=list)


class Board:
    """The map with everything in its place, and how far somebody is on it."""

    def __init__(
        self,
        exercises: Iterable[Exercise],
        claims: Iterable[Claim],
        best: Mapping[str, Verdict],
    ) -> None:
        self._cells = {Place(p, layer): Cell() for layer in LAYERS for p in PRIMITIVES}
        self._best = best
        for exercise in exercises:
            self[place_of(exercise)].exercises.append(exercise)
        for claim in claims:
            self[Place(claim.primitive, claim.layer)].claims.append(claim.number)

    def __getitem__(self, place: Place) -> Cell:
        return self._cells[place]

    def __iter__(self) -> Iterator[tuple[Place, Cell]]:
        """Row by row."""
        return iter(self._cells.items())

    @property
    def exercises(self) -> list[Exercise]:
        """All of them, by number."""
        found = [exercise for cell in self._cells.values() for exercise in cell.exercises]
        return sorted(found, key=lambda exercise: exercise.number)

    @property
    def fixed(self) -> int:
        """How many exercises are fixed."""
        return sum(self.state(exercise) == Verdict.FIXED for exercise in self.exercises)

    def state(self, exercise: Exercise) -> str:
        """The best verdict reached, or `open`."""
        verdict = self._best.get(exercise.name)
        return verdict.value if verdict else "open"


def place_of(exercise: Exercise) -> Place:
    """The exercise's place."""
    return Place(exercise.facts.primitive, exercise.facts.layer)
