"""Random mazes in which the two zones conflict.

Rules (after the released generator; in brackets what scales on other boards than 9 x 9): a maze by Prim's algorithm,
18-28 closed cells between corridors opened (with the area); start and exit on opposite corners of a random diagonal;
gold and diamonds, 3-5 each, within two steps of the other two corners; 3-5 lava cells (with the side) in the interior;
a bonus tile in the centre; a budget of seven moves over the longer of the shortest routes through one of the two
corners.

Departures from the released generator:

1. A zone's corner always holds one of its items, and both orders of visiting the corners are checked. So no route
   within the budget collects everything; the released one checks one order, and its corners may be empty.
2. Each zone can be collected whole within the budget without touching lava. The released generator only asks that a
   route to the exit avoids it.
3. Mazes are split by their walls, up to rotation and reflection: one layout of sixteen is held out.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np

from trainer.domains.maze.board import Board, Cell, neighbours
from trainer.domains.records import is_held_out

WALL, EMPTY, START, EXIT, GOLD, DIAMOND, LAVA, BONUS = "#.SEGDLB"
CONTENTS = (WALL, EMPTY, START, EXIT, GOLD, DIAMOND, LAVA, BONUS)
MIN_SIZE, MAX_SIZE = 5, 12
_PAPER_SIZE, _ZONE_RADIUS, _ITEMS, _SLACK = 9, 2, (3, 5), 7


@dataclass(frozen=True)
class Maze:
    """rows: one string per row, one character of :data:`CONTENTS` per cell. budget: moves that a route may have."""

    rows: tuple[str, ...]
    budget: int

    @property
    def size(self) -> int:
        return len(self.rows)

    @cached_property
    def places(self) -> dict[str, tuple[Cell, ...]]:
        """The cells of each content, row by row."""
        found: dict[str, list[Cell]] = {content: [] for content in CONTENTS}
        for r, row in enumerate(self.rows):
            for c, content in enumerate(row):
                found[content].append((r, c))
        return {content: tuple(cells) for content, cells in found.items()}

    @property
    def start(self) -> Cell:
        return self.places[START][0]

    @property
    def exit(self) -> Cell:
        return self.places[EXIT][0]

    @cached_property
    def board(self) -> Board:
        """The cells that can be entered, lava among them."""
        board = Board(self.size, 0)
        return Board(self.size, sum(board.bit(cell) for c in CONTENTS if c != WALL for cell in self.places[c]))


def max_budget(size: int) -> int:
    """Mazes that need a larger budget are not used, so that answers have a bounded length."""
    return 4 * size


def random_maze(rng: np.random.Generator, size: int, *, heldout: bool) -> Maze:
    """A maze on the wanted side of the split; it depends on the generator's state alone."""
    source = random.Random(int(rng.integers(2**63)))
    while True:
        opened = _prim(source, size)
        if held_out(opened, size) is heldout and (maze := _furnish(Board(size, opened), source)) is not None:
            return maze


def held_out(opened: int, size: int) -> bool:
    """Whether a layout (its open cells, corners and centre included) is reserved for evaluation."""
    board = Board(size, opened)
    cells = np.zeros((size, size), dtype=np.uint8)
    for cell in board.cells():
        cells[cell] = 1
    turned = [np.rot90(side, turns) for side in (cells, cells.T) for turns in range(4)]
    return is_held_out(min(np.ascontiguousarray(array).tobytes() for array in turned))


def _scaled(low: int, high: int, factor: float, source: random.Random) -> int:
    """A number of things: in [low, high] on the paper's board, that range times ``factor`` on another."""
    return source.randint(max(1, round(low * factor)), max(1, round(high * factor)))


def _corners(size: int) -> tuple[Cell, ...]:
    last = size - 1
    return (0, 0), (last, last), (0, last), (last, 0)


def _prim(source: random.Random, size: int) -> int:
    """Open cells: a tree of corridors by Prim's algorithm, some more cells between corridors, corners and centre."""
    board = Board(size, 0)
    opened = 0
    frontier = [(source.randrange(size), source.randrange(size))]
    while frontier:
        position = source.randrange(len(frontier))
        frontier[position], frontier[-1] = frontier[-1], frontier[position]
        cell = frontier.pop()
        near = list(neighbours(cell, size))
        if opened & board.bit(cell) or (opened and sum(bool(opened & board.bit(n)) for n in near) != 1):
            continue
        opened |= board.bit(cell)
        frontier += [n for n in near if not opened & board.bit(n)]
    between = [
        (r, c)
        for r in range(size)
        for c in range(size)
        if not opened & board.bit((r, c)) and sum(bool(opened & board.bit(n)) for n in neighbours((r, c), size)) >= 2
    ]
    more = _scaled(18, 28, (size / _PAPER_SIZE) ** 2, source)
    for cell in [*source.sample(between, min(more, len(between))), *_corners(size), _centre(size)]:
        opened |= board.bit(cell)
    return opened


def _centre(size: int) -> Cell:
    return size // 2, size // 2


def _furnish(board: Board, source: random.Random) -> Maze | None:
    """Place start, exit, items and lava, and set the budget; ``None`` where the rules cannot be met."""
    size = board.size
    corners = list(_corners(size))
    if source.random() < 0.5:
        corners = corners[2:] + corners[:2]
    ends, zones = corners[:2], corners[2:]
    source.shuffle(ends)
    source.shuffle(zones)
    (start, end), (gold_corner, diamond_corner) = ends, zones
    detours = [board.tour([start, corner, end]) for corner in zones]
    both = [board.tour([start, *order, end]) for order in (zones, zones[::-1])]
    if None in detours or None in both:
        return None
    budget = max(d for d in detours if d is not None) + _SLACK
    if budget > max_budget(size) or min(b for b in both if b is not None) <= budget:
        return None
    taken = {start, end, _centre(size)}
    gold = _zone(board, gold_corner, taken, source)
    diamonds = _zone(board, diamond_corner, taken, source)
    lava = _lava(board, taken | set(gold or ()) | set(diamonds or ()), source)
    if gold is None or diamonds is None or not lava:
        return None
    safe = board.without(lava)
    if any(not _collectable(safe, start, items, end, budget) for items in (gold, diamonds)):
        return None
    content = {start: START, end: EXIT, _centre(size): BONUS} | dict.fromkeys(gold, GOLD)
    content |= dict.fromkeys(diamonds, DIAMOND) | dict.fromkeys(lava, LAVA)
    opened = set(board.cells())
    rows = ["".join(content.get((r, c), EMPTY if (r, c) in opened else WALL) for c in range(size)) for r in range(size)]
    return Maze(tuple(rows), budget)


def _zone(board: Board, corner: Cell, taken: set[Cell], source: random.Random) -> list[Cell] | None:
    """Cells for a zone's items, its corner first; ``None`` where there is too little room."""
    room = [
        cell
        for cell in board.cells()
        if 0 < abs(cell[0] - corner[0]) + abs(cell[1] - corner[1]) <= _ZONE_RADIUS and cell not in taken
    ]
    count = source.randint(*_ITEMS)
    return [corner, *source.sample(room, count - 1)] if len(room) >= count - 1 else None


def _lava(board: Board, taken: set[Cell], source: random.Random) -> list[Cell]:
    margin = 2 if board.size >= _PAPER_SIZE else 1
    inside = range(margin, board.size - margin)
    room = [cell for cell in board.cells() if cell[0] in inside and cell[1] in inside and cell not in taken]
    return source.sample(room, min(len(room), _scaled(3, 5, board.size / _PAPER_SIZE, source)))


def _collectable(board: Board, start: Cell, items: Sequence[Cell], end: Cell, budget: int) -> bool:
    """Whether a route within the budget collects all items."""
    tours = (board.tour([start, *order, end]) for order in permutations(items))
    return any(tour is not None and tour <= budget for tour in tours)
