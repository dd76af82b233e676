"""How mazes and routes are written: compactly for models with a vocabulary of their own, or as chat.

Compact: a cell is named by its column letter and row number, and a maze is the list of its cells, each name with its
content as one token (``a0S b0. c0#`` without the spaces). A route is the cells it goes through (``b0 b1 …``), so that a
small model need not add up moves to know where it is: in the paper's words this is the move to that cell. Naming a cell
that is not next to the present one is a move against a wall: it stays in place and costs a move. Chat: the grid as the
paper draws it, and routes as the words UP, DOWN, LEFT, RIGHT.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from transformers import PreTrainedTokenizerFast

from evolve.chain import ChainFormat
from trainer.domains.base import goal_text
from trainer.domains.maze.board import Cell
from trainer.domains.maze.generator import BONUS, CONTENTS, DIAMOND, GOLD, LAVA, MAX_SIZE, Maze, max_budget
from trainer.domains.maze.rules import COMPONENTS
from trainer.domains.vocabulary import closed_tokenizer

WORDS: dict[str, Cell] = {"UP": (-1, 0), "DOWN": (1, 0), "LEFT": (0, -1), "RIGHT": (0, 1)}
_CELL = re.compile(r"([a-z])(\d+)")
_ROUTE = re.compile(r"(?:[a-z]\d+)+")
_WORD = re.compile(r"\b(?:UP|DOWN|LEFT|RIGHT)\b")


def cell_name(cell: Cell) -> str:
    return f"{chr(ord('a') + cell[1])}{cell[0]}"


def route_text(cells: Sequence[Cell]) -> str:
    """A compact answer."""
    return "".join(map(cell_name, cells))


def compact_prompt(maze: Maze, m: int, goal: np.ndarray | None) -> str:
    """The maze row by row, the budget, the weights in tenths where there are any, and the number of answers."""
    rows = (
        "".join(cell_name((r, c)) + content for c, content in enumerate(row)) + "\n" for r, row in enumerate(maze.rows)
    )
    weights = "" if goal is None else " w" + "".join(f" {round(10 * float(weight))}" for weight in goal)
    return f"{''.join(rows)}| {maze.budget}{weights} = {m}\n"


def read_route(text: str, maze: Maze) -> list[Cell] | None:
    """The moves of a compact answer; ``None`` where it is no list of cells."""
    text = text.strip()
    if not _ROUTE.fullmatch(text):
        return None
    position, steps = maze.start, []
    for column, row in _CELL.findall(text):
        step = int(row) - position[0], ord(column) - ord("a") - position[1]
        row_, column_ = position[0] + step[0], position[1] + step[1]
        inside = 0 <= row_ < maze.size and 0 <= column_ < maze.size
        if abs(step[0]) + abs(step[1]) != 1 or not inside or maze.rows[row_][column_] == "#":
            step = (0, 0)
        position = position[0] + step[0], position[1] + step[1]
        steps.append(step)
    return steps


def read_words(text: str) -> list[Cell] | None:
    """The moves of a chat answer: its direction words, in any case; ``None`` where there is none."""
    return [WORDS[word] for word in _WORD.findall(text.upper())] or None


def words(cells: Sequence[Cell], start: Cell) -> str:
    """A chat answer from the cells of a legal route."""
    names = {step: word for word, step in WORDS.items()}
    pairs = zip([start, *cells], cells, strict=False)
    return " ".join(names[b[0] - a[0], b[1] - a[1]] for a, b in pairs)


def chat_prompt(maze: Maze, m: int, goal: np.ndarray | None) -> str:
    """The request of a pretrained model, after the released prompt."""
    kinds = (("gold", GOLD), ("diamond", DIAMOND), ("lava", LAVA), ("bonus", BONUS))
    counts = ", ".join(f"{len(maze.places[content])} {kind}" for kind, content in kinds)
    chain = ChainFormat(m=m)
    wanted = (
        "Reply with one route"
        if m == 1
        else f"Reply with {m} different routes that make different trade-offs. Each must reach E by itself. Put each"
    )
    shown = "".join(f"\n{chain.open}{route}{chain.close}" for route in ("UP UP RIGHT", "RIGHT UP UP")[: min(m, 2)])
    lines = [
        f"Find a way through a {maze.size}x{maze.size} maze from S to E. Collect gold and diamonds, avoid lava.",
        "\n".join(" ".join(row) for row in maze.rows),
        "- Moves: UP, DOWN, LEFT, RIGHT. # is a wall; a move against a wall or the border is lost.\n"
        "- G is gold, D a diamond, B a bonus tile, L lava. Stepping on a tile counts once.\n"
        "- Unless the route reaches E, nothing counts. The route ends at E.\n"
        f"- A route may have {maze.budget} moves.\n"
        f"- There are {counts} tiles.",
        *([] if goal is None else [goal_text(COMPONENTS, goal)]),
        f"{wanted} between {chain.open} and {chain.close}, as words only, in this form:{shown}",
    ]
    return "\n\n".join(lines)


def answer_tokens(size: int) -> int:
    """Room for one compact answer: a route of the largest budget between its tags."""
    return max_budget(size) + 2


def vocabulary(size: int) -> list[str]:
    """All entries of the tokenizer in order."""
    names = [cell_name((r, c)) for r in range(size) for c in range(size)]
    chain = ChainFormat()
    numbers = [f" {number}" for number in range(max_budget(MAX_SIZE) + 1)]
    return [
        chain.open,
        chain.close,
        "\n",
        "|",
        " w",
        " =",
        *numbers,
        *names,
        *(name + content for name in names for content in CONTENTS),
    ]


def build_tokenizer(size: int) -> PreTrainedTokenizerFast:
    """One token per cell, and one per cell with its content."""
    return closed_tokenizer(vocabulary(size))
