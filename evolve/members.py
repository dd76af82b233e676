"""The table of an archive's members: compact matrices for selection, and two orders for the best and the worst.

Adding, removing and finding the best or the worst cost the same however many members there are (the orders are sorted
lists: a binary search and one block move of eight bytes a member).
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, insort
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from evolve.program import Program

Rewards = NDArray[np.float64]
Levels = NDArray[np.uint8]
Rank = tuple[float, int, int]

_Scalar = TypeVar("_Scalar", bound=np.generic)


def rank(program: Program) -> Rank:
    """The order of merit, best first: higher task scalar, then shorter, then older."""
    return (-program.evaluation.scalar, len(program.source), program.number)


class Pool:
    """What selection looks at: members by position, n of them, until the archive's next insert.

    rows: of the members' table, or all of its rows where that is ``None``. ``rows[i]`` is the member at position i.
    """

    def __init__(self, table: Members, rows: NDArray[np.int64] | None = None) -> None:
        self._table, self._rows = table, rows

    def __len__(self) -> int:
        return len(self._table) if self._rows is None else len(self._rows)

    def __getitem__(self, position: int) -> Program:
        return self._table.programs[position if self._rows is None else int(self._rows[position])]

    @cached_property
    def rewards(self) -> Rewards:
        """Shape (n, d), in [0, 1]."""
        return self._seen(self._table.rewards)

    @cached_property
    def levels(self) -> Levels:
        """Shape (n, d), the rewards in whole steps."""
        return self._seen(self._table.levels)

    @cached_property
    def scalars(self) -> Rewards:
        """Shape (n,), in [0, 1]."""
        return self._seen(self._table.scalars)

    @cached_property
    def _digests(self) -> NDArray[np.uint64]:
        return self._seen(self._table.digests)

    def holds(self, digest: str) -> NDArray[np.bool_]:
        """Which positions are programs with this digest, shape (n,)."""
        held: NDArray[np.bool_] = self._digests == _tail(digest)
        return held

    def _seen(self, column: NDArray[_Scalar]) -> NDArray[_Scalar]:
        return column if self._rows is None else column.take(self._rows, axis=0)


def _tail(digest: str) -> np.uint64:
    """The last half of a program's digest: a number compares a hundred times faster than text."""
    return np.uint64(int(digest[-16:], 16))


class Members:
    """Programs by row, 0 to ``len(members) - 1``; rows change when members leave."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self.programs: list[Program] = []
        self._row_of: dict[int, int] = {}
        self._columns: dict[str, int] = {}
        self._order: list[Rank] = []
        self._rewards = np.zeros((64, 0))
        self._levels = np.zeros((64, 0), dtype=np.uint8)
        self._scalars = np.zeros(64)
        self._digests = np.zeros(64, dtype=np.uint64)

    def __len__(self) -> int:
        return len(self.programs)

    def __contains__(self, number: object) -> bool:
        return number in self._row_of

    def __getitem__(self, number: int) -> Program:
        return self.programs[self._row_of[number]]

    @property
    def rewards(self) -> Rewards:
        return self._rewards[: len(self.programs)]

    @property
    def levels(self) -> Levels:
        return self._levels[: len(self.programs)]

    @property
    def scalars(self) -> Rewards:
        return self._scalars[: len(self.programs)]

    @property
    def digests(self) -> NDArray[np.uint64]:
        return self._digests[: len(self.programs)]

    def row(self, number: int) -> int:
        """The row of a member."""
        return self._row_of[number]

    def vector(self, program: Program) -> Rewards:
        """The program's rewards in the table's columns, new components appended (and remembered only by ``add``)."""
        evaluation = program.evaluation
        columns = self._columns_with(program)
        vector = np.zeros(len(columns))
        vector[[columns[name] for name in evaluation.components]] = evaluation.reward
        return vector

    def in_steps(self, rewards: Rewards) -> Levels:
        """Rewards as whole steps, rounded down; 1.0 is a step of its own."""
        # The small offset keeps values such as 0.3 / 0.1 from falling a step short.
        return np.floor(np.clip(rewards, 0.0, 1.0) * self._steps + 1e-9).astype(np.uint8)

    def best(self, count: int) -> list[Program]:
        """The ``count`` best, best first (see :func:`rank`)."""
        return [self[number] for _, _, number in itertools.islice(self._order, count)]

    def pool(self, limit: int, elites: int, rng: np.random.Generator) -> Pool:
        """All members or, where there are more than ``limit``: the ``elites`` best and others drawn uniformly."""
        if len(self) <= limit:
            return Pool(self)
        top = [self._row_of[number] for _, _, number in itertools.islice(self._order, min(elites, limit))]
        rows = np.sort(np.concatenate([np.array(top, dtype=np.int64), rng.integers(len(self), size=limit)]))
        first = np.ones(len(rows), dtype=bool)  # of equal ones; np.unique takes ten times as long
        np.not_equal(rows[1:], rows[:-1], out=first[1:])
        return Pool(self, rows[first])

    def add(self, program: Program) -> None:
        """Append a program that is no member."""
        row, vector = len(self.programs), self.vector(program)
        self._columns = self._columns_with(program)
        self._make_room(row + 1, len(vector))
        self._rewards[row] = vector
        self._levels[row] = self.in_steps(vector)
        self._scalars[row] = program.evaluation.scalar
        self._digests[row] = _tail(program.digest)
        self.programs.append(program)
        self._row_of[program.number] = row
        insort(self._order, rank(program))

    def remove(self, number: int) -> None:
        """Take a member out; the last row fills the gap, so that the matrices stay compact."""
        row, last = self._row_of.pop(number), len(self.programs) - 1
        gone, moved = self.programs[row], self.programs.pop()
        del self._order[bisect_left(self._order, rank(gone))]
        if row != last:
            self.programs[row] = moved
            self._row_of[moved.number] = row
            for column in (self._rewards, self._levels, self._scalars, self._digests):
                column[row] = column[last]

    def _columns_with(self, program: Program) -> dict[str, int]:
        """The components and their columns, those of the program that are new appended."""
        if all(name in self._columns for name in program.evaluation.components):
            return self._columns
        columns = dict(self._columns)
        for name in program.evaluation.components:
            columns.setdefault(name, len(columns))
        return columns

    def _make_room(self, rows: int, columns: int) -> None:
        wider = columns - self._rewards.shape[1]
        longer = len(self._scalars) if rows > len(self._scalars) else 0
        if wider or longer:
            self._rewards = np.pad(self._rewards, ((0, longer), (0, wider)))
            self._levels = np.pad(self._levels, ((0, longer), (0, wider)))
        if longer:
            self._scalars = np.pad(self._scalars, (0, longer))
            self._digests = np.concatenate([self._digests, np.zeros_like(self._digests)])
