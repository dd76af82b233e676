"""Routes for the supervised warm-up: legal, within the budget, and mostly far from the best.

Half of the routes go straight to the exit, the others over a random cell or over one or two items of one zone, always
by shortest ways; lava is avoided half of the time. So the warm-up teaches how routes are written and that they must
reach the exit, and leaves it to the rewards what is worth collecting.
"""

from __future__ import annotations

import random
from itertools import pairwise

from trainer.domains.maze.board import Board, Cell
from trainer.domains.maze.generator import DIAMOND, GOLD, LAVA, Maze

_TRIES = 8


def random_route(maze: Maze, source: random.Random) -> list[Cell]:
    """A route's cells without the start; it reaches the exit within the budget."""
    safe = maze.board.without(list(maze.places[LAVA]))
    board = safe if source.random() < 0.5 else maze.board
    for _ in range(_TRIES):
        stops = [maze.start, *_waypoints(maze, board, source), maze.exit]
        length = board.tour(stops)
        if length is None or length > maze.budget:
            continue
        cells = [cell for a, b in pairwise(stops) for cell in board.route(a, b, source)]
        return cells[: cells.index(maze.exit) + 1]
    return safe.route(maze.start, maze.exit, source)


def distinct_routes(maze: Maze, count: int, source: random.Random) -> list[list[Cell]]:
    """``count`` different routes, unless the maze has too few that come up."""
    routes: list[list[Cell]] = []
    for _ in range(_TRIES * count):
        route = random_route(maze, source)
        if route not in routes:
            routes.append(route)
        if len(routes) == count:
            break
    return routes


def _waypoints(maze: Maze, board: Board, source: random.Random) -> list[Cell]:
    kind = source.random()
    if kind < 0.5:
        return []
    if kind < 0.8:
        return [source.choice(board.cells())]
    items = maze.places[GOLD if kind < 0.9 else DIAMOND]
    return source.sample(items, min(len(items), source.choice((1, 1, 2))))
