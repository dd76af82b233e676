"""Sets of cells of a square board as integers, so that a flood fill is a few shifts instead of a queue.

Cell (row, column) of a board of size n is bit ``row * (n + 1) + column``: the unused column between rows keeps a shift
from leaking into the next row.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

Cell = tuple[int, int]
STEPS: tuple[Cell, ...] = ((-1, 0), (1, 0), (0, -1), (0, 1))


@dataclass(frozen=True)
class Board:
    """The open cells of a board of ``size`` x ``size``."""

    size: int
    open: int

    def bit(self, cell: Cell) -> int:
        return 1 << (cell[0] * (self.size + 1) + cell[1])

    def without(self, cells: list[Cell]) -> Board:
        """The same board with some cells closed."""
        return Board(self.size, self.open & ~sum(self.bit(cell) for cell in set(cells)))

    @cached_property
    def _layers(self) -> dict[Cell, list[int]]:
        return {}

    def layers(self, target: Cell) -> list[int]:
        """Open cells by their distance to ``target``: element i holds those that are i steps away."""
        if target not in self._layers:
            stride = self.size + 1
            front = self.bit(target) & self.open
            rest = self.open & ~front
            found = [front]
            while front:
                front = (front << 1 | front >> 1 | front << stride | front >> stride) & rest
                rest &= ~front
                found.append(front)
            self._layers[target] = found[:-1]
        return self._layers[target]

    def distance(self, start: Cell, target: Cell) -> int | None:
        """Steps of a shortest route, ``None`` where there is none."""
        bit = self.bit(start)
        return next((i for i, layer in enumerate(self.layers(target)) if layer & bit), None)

    def tour(self, stops: list[Cell]) -> int | None:
        """Steps of the shortest route through all stops in this order."""
        legs = [self.distance(a, b) for a, b in pairwise(stops)]
        return None if None in legs else sum(leg for leg in legs if leg is not None)

    def route(self, start: Cell, target: Cell, rng: random.Random) -> list[Cell]:
        """A random shortest route, without ``start``. There must be one."""
        layers = self.layers(target)
        distance = self.distance(start, target)
        assert distance is not None, "no route"
        cells = []
        cell = start
        for layer in reversed(layers[:distance]):
            cell = rng.choice([near for near in neighbours(cell, self.size) if layer & self.bit(near)])
            cells.append(cell)
        return cells

    def cells(self) -> list[Cell]:
        """The open cells, row by row."""
        return [(r, c) for r in range(self.size) for c in range(self.size) if self.open & self.bit((r, c))]


def neighbours(cell: Cell, size: int) -> Iterator[Cell]:
    """The cells of the board next to ``cell``."""
    for down, right in STEPS:
        row, column = cell[0] + down, cell[1] + right
        if 0 <= row < size and 0 <= column < size:
            yield row, column
