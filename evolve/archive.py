"""One island's population: a bounded archive over reward vectors, of one of three kinds.

A program lives in the archive as long as it is the best of at least one niche. There are two families of niches:

- cells of a feature space, a grid (``grid``: MAP-Elites, Mouret and Clune 2015) or a Voronoi tessellation (``cvt``:
  :mod:`evolve.voronoi`);
- reward niches, one per pattern of the reward vector (with pass/fail tests: one per set of passed tests), so that a
  program that alone passes some test stays a possible parent however low its mean is. At most ``capacity`` of them: the
  worst goes first, sparing whoever alone is best at some component.

``elite`` has neither: it keeps the ``capacity`` best programs.

Everything is bounded, and what an insert or a selection costs does not grow with the number of members
(:mod:`evolve.members`), nor with that of programs seen.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evolve.config import ArchiveConfig
from evolve.features import Reference, in_bins, positions
from evolve.members import Levels, Members, Pool, Rank, Rewards, rank
from evolve.program import Program
from evolve.voronoi import cell as voronoi_cell
from evolve.voronoi import centroids

_COMPARED = 2_048  # members that a newcomer's behaviour is compared with: bounds what that costs

_Key = bytes | tuple[int, ...]


class Archive(Protocol):
    """What selection and islands need of a population. :func:`make_archive` makes one."""

    def __len__(self) -> int: ...

    def __contains__(self, number: object) -> bool: ...

    def __getitem__(self, number: int) -> Program:
        """The member with a program number."""
        ...

    @property
    def members(self) -> Sequence[Program]:
        """The programs, by row. Rows change with every insert."""
        ...

    def vector(self, program: Program) -> Rewards:
        """A program's reward vector in the archive's order of components, shape (d,)."""
        ...

    def accepts(self, program: Program) -> bool:
        """Whether :meth:`insert` would make the program a member; changes nothing."""
        ...

    def insert(self, program: Program) -> bool:
        """Offer a program; true when it is a member afterwards. One that could not be judged never is."""
        ...

    def best(self, count: int) -> list[Program]:
        """The ``count`` members with the highest task scalar, best first; ties: shorter, then older."""
        ...

    def pool(self, limit: int, elites: int, rng: np.random.Generator) -> Pool:
        """What to select from: all members, or the ``elites`` best and a uniform sample, about ``limit`` in all."""
        ...


class CellFamily(Protocol):
    """A division of feature space into cells, each of which keeps its best program."""

    def cell(self, program: Program, vector: Rewards) -> tuple[int, ...]:
        """The program's cell. vector: its reward vector, shape (d,)."""
        ...


class _Featured:
    """A family over the configured features, some of which compare with the first program that it is asked about."""

    def __init__(self, config: ArchiveConfig) -> None:
        self._config, self._reference = config, Reference()

    def point(self, program: Program) -> Rewards:
        return positions(self._config.features, program, self._reference)


class Grid(_Featured):
    """Equal bins along every feature."""

    def cell(self, program: Program, vector: Rewards) -> tuple[int, ...]:
        return in_bins(self._config.features, self.point(program))


class Voronoi(_Featured):
    """The nearest of ``centroids`` points: in feature space or, without features, among reward vectors.

    The space of reward vectors has the components of the first program; later ones do not count.
    """

    _dimensions: int | None = None

    def cell(self, program: Program, vector: Rewards) -> tuple[int, ...]:
        if self._config.features:
            point = self.point(program)
            return (voronoi_cell(point, centroids(self._config.centroids, len(point), "features")),)
        if self._dimensions is None:
            self._dimensions = len(vector)
        point = np.zeros(self._dimensions)
        shared = min(len(vector), self._dimensions)
        point[:shared] = vector[:shared]
        return (voronoi_cell(point, centroids(self._config.centroids, self._dimensions, "rewards")),)


CELLS: dict[str, type[Grid] | type[Voronoi] | None] = {"grid": Grid, "cvt": Voronoi, "elite": None}
"""The kinds of archive, and the family of cells that each has."""


def make_archive(config: ArchiveConfig) -> NicheArchive:
    """An empty archive of the configured kind."""
    family = CELLS[config.kind]
    return NicheArchive(config, family(config) if family else None)


class NicheArchive:
    """An :class:`Archive` of niches; see the module."""

    def __init__(self, config: ArchiveConfig, cells: CellFamily | None) -> None:
        self._config, self._cells = config, cells
        self._members = Members(config.levels)
        self._niches: dict[_Key, int] = {}
        self._niches_of: dict[int, set[_Key]] = {}
        self._patterns = _Patterns(self._members, spare=cells is not None)

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, number: object) -> bool:
        return number in self._members

    def __getitem__(self, number: int) -> Program:
        return self._members[number]

    @property
    def members(self) -> Sequence[Program]:
        """The programs, by row."""
        return self._members.programs

    def vector(self, program: Program) -> Rewards:
        """The program's reward vector in the archive's order of components."""
        return self._members.vector(program)

    def pool(self, limit: int, elites: int, rng: np.random.Generator) -> Pool:
        """See :class:`Archive`."""
        return self._members.pool(limit, elites, rng)

    def accepts(self, program: Program) -> bool:
        """Whether some niche of the program is empty or held by a worse one, and its behaviour is new enough."""
        if program.evaluation.infrastructure is not None:
            return False
        return any(self._wins(program, key) for key in self._keys(program)) and self._is_novel(program)

    def insert(self, program: Program) -> bool:
        """Offer a program to its niches; true when it is a member afterwards."""
        if program.evaluation.infrastructure is not None or program.number in self._members:
            return program.number in self._members
        won = [key for key in self._keys(program) if self._wins(program, key)]
        if not won or not self._is_novel(program):
            return False
        self._members.add(program)
        self._niches_of[program.number] = set()
        for key in won:
            self._give(key, program.number)
        if len(self._patterns) > self._config.capacity:
            worst = self._patterns.worst()
            self._take(self._patterns.key(worst), worst)
        return program.number in self._members

    def best(self, count: int) -> list[Program]:
        """See :class:`Archive`."""
        return self._members.best(count)

    def cell(self, program: Program) -> tuple[int, ...]:
        """The program's cell in feature space; empty where the archive has none."""
        return self._cells.cell(program, self._members.vector(program)) if self._cells else ()

    def _keys(self, program: Program) -> tuple[_Key, ...]:
        if self._cells is None:
            return (program.digest.encode(),)
        vector = self._members.vector(program)
        pattern = self._members.in_steps(vector).tobytes()
        # Without trailing zeros: columns may be added later.
        return (self._cells.cell(program, vector), pattern.rstrip(b"\0"))

    def _wins(self, program: Program, key: _Key) -> bool:
        holder = self._niches.get(key)
        return holder is None or rank(program) < rank(self._members[holder])

    def _is_novel(self, program: Program) -> bool:
        """Whether no member that is at least as good behaves nearly the same."""
        if not self._config.novelty:
            return True
        scalars = self._members.scalars[:_COMPARED]
        rewards = self._members.rewards[:_COMPARED]
        vector = self._members.vector(program)
        if not len(rewards) or not len(vector):
            return True
        known = vector[: rewards.shape[1]]
        distance = (np.abs(rewards - known).sum(axis=1) + vector[rewards.shape[1] :].sum()) / len(vector)
        near = (distance < self._config.novelty) & (scalars >= program.evaluation.scalar)
        return not bool(near.any())

    def _give(self, key: _Key, number: int) -> None:
        holder = self._niches.get(key)
        if isinstance(key, bytes):
            self._patterns.add(number, key)  # before the old one goes: the best level is never without a holder
        if holder is not None:
            self._take(key, holder)
        self._niches[key] = number
        self._niches_of[number].add(key)

    def _take(self, key: _Key, number: int) -> None:
        """Take a niche from its holder, who leaves the archive with the last one."""
        del self._niches[key]
        self._niches_of[number].discard(key)
        if isinstance(key, bytes):
            self._patterns.remove(number)
        if not self._niches_of[number]:
            del self._niches_of[number]
            self._members.remove(number)


class _Patterns:
    """Who holds the reward niches: the worst of them, sparing the only holder of a component's best level."""

    def __init__(self, members: Members, *, spare: bool) -> None:
        self._members, self._spare = members, spare
        self._key_of: dict[int, bytes] = {}
        self._order: list[Rank] = []
        self._top: Levels = np.zeros(0, dtype=np.uint8)
        self._holders: NDArray[np.int64] = np.zeros(0, dtype=np.int64)  # of each component's top level

    def __len__(self) -> int:
        return len(self._key_of)

    def key(self, number: int) -> bytes:
        return self._key_of[number]

    def add(self, number: int, key: bytes) -> None:
        levels = self._levels(number)
        self._holders = np.where(levels > self._top, 1, self._holders + (levels == self._top))
        self._top = np.maximum(self._top, levels)
        self._key_of[number] = key
        insort(self._order, rank(self._members[number]))

    def remove(self, number: int) -> None:
        del self._key_of[number]
        del self._order[bisect_left(self._order, rank(self._members[number]))]
        self._holders -= self._levels(number) == self._top
        for column in np.flatnonzero(self._holders == 0):
            self._recount(int(column))

    def worst(self) -> int:
        """The number of the worst holder that may go."""
        if self._spare:
            for _, _, number in reversed(self._order):  # at most one more step than there are components
                if not ((self._levels(number) == self._top) & (self._holders == 1)).any():
                    return number
        return self._order[-1][2]

    def _levels(self, number: int) -> Levels:
        levels: Levels = self._members.levels[self._members.row(number)]
        new = len(levels) - len(self._top)
        if new:  # nobody has anything there yet: all hold level 0
            self._top = np.pad(self._top, (0, new))
            self._holders = np.concatenate([self._holders, np.full(new, len(self._key_of))])
        return levels

    def _recount(self, column: int) -> None:
        rows = np.array([self._members.row(number) for number in self._key_of], dtype=np.int64)
        values = self._members.levels[rows, column]
        self._top[column] = values.max(initial=0)
        self._holders[column] = int((values == self._top[column]).sum())
