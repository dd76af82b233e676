"""Walking through a maze, and what a walk earns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from trainer.domains.maze.board import Cell
from trainer.domains.maze.generator import BONUS, DIAMOND, EXIT, GOLD, LAVA, WALL, Maze

COMPONENTS = ("completion", "gold", "diamond", "avoid_lava")
BONUS_FACTOR = 1.5

RewardKind = Literal["linear", "squared"]


def walk(maze: Maze, steps: Sequence[Cell]) -> set[Cell] | None:
    """The cells that a route touches before the exit, or ``None`` where it does not reach the exit within the budget.

    steps: (down, right) of each move. A move against a wall or the border stays in place and costs a move.
    """
    cell = maze.start
    seen: set[Cell] = set()
    for down, right in steps[: maze.budget]:
        row, column = cell[0] + down, cell[1] + right
        if 0 <= row < maze.size and 0 <= column < maze.size and maze.rows[row][column] != WALL:
            cell = row, column
        content = maze.rows[cell[0]][cell[1]]
        if content == EXIT:
            return seen
        seen.add(cell)
    return None


def rewards(maze: Maze, steps: Sequence[Cell] | None, kind: RewardKind) -> np.ndarray:
    """The reward vector, shape (4,), each in [0, 1]: completion, share of the gold, of the diamonds, of avoided lava.

    All zeros unless the exit is reached within the budget. ``squared`` squares the three shares and multiplies them by
    1.5 (at most 1 each) if the bonus tile was touched; ``linear`` takes them as they are, and the bonus has no effect.
    The released documents say the former is linear, the released generator writes the latter into its data.
    """
    touched = None if steps is None else walk(maze, steps)
    if touched is None:
        return np.zeros(len(COMPONENTS))
    kinds = (maze.places[content] for content in (GOLD, DIAMOND, LAVA))
    gold, diamond, lava = (len(touched.intersection(cells)) / len(cells) for cells in kinds)
    shares = np.array([gold, diamond, 1 - lava])
    if kind == "squared":
        shares = np.minimum(shares**2 * (BONUS_FACTOR if touched.intersection(maze.places[BONUS]) else 1.0), 1.0)
    return np.concatenate([[1.0], shares])
