"""One island's population: a bounded MAP-Elites archive over reward vectors.

A program lives in the archive as long as it is the best of at least one niche. There are two families of niches:

- cells of a grid over features (source length and tests passed by default): the classic MAP-Elites map;
- reward niches, one per pattern of the reward vector (with pass/fail tests: one per set of passed tests), so that a
  program that alone passes some test stays a possible parent however low its mean is.

Both are bounded, so inserting and selecting cost the same in the millionth iteration as in the thousandth. The members'
reward vectors lie in one compact matrix, on which :mod:`evolve.selection` works.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evolve.config import METRIC_PREFIX, ArchiveConfig, FeatureConfig
from evolve.program import Program
from sandbox.verdict import Status

_SHORTEST = 16.0  # characters: everything shorter is in the first length bin
_DOUBLINGS = 12.0  # 16 characters to 64 Ki characters

_Key = bytes | tuple[int, ...]


class Archive:
    """A MAP-Elites archive. Members are numbered by row, 0 to ``len(archive) - 1``; rows change with every insert."""

    def __init__(self, config: ArchiveConfig) -> None:
        self._config = config
        self._niches: dict[_Key, int] = {}
        self._niches_of: dict[int, set[_Key]] = {}
        self._row_of: dict[int, int] = {}
        self._members: list[Program] = []
        self._columns: dict[str, int] = {}
        self._rewards = np.zeros((64, 0))
        self._levels = np.zeros((64, 0), dtype=np.uint8)
        self._scalars = np.zeros(64)
        self._digests = np.zeros(64, dtype="S64")
        self._patterns: dict[int, bytes] = {}  # program number to the reward niche that it holds
        self._holds_pattern = np.zeros(64, dtype=bool)

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, number: object) -> bool:
        return number in self._row_of

    @property
    def members(self) -> Sequence[Program]:
        """The programs, by row."""
        return self._members

    @property
    def rewards(self) -> NDArray[np.float64]:
        """Reward vectors by row, shape (n, d), in [0, 1]. A view: valid until the next insert."""
        return self._rewards[: len(self._members)]

    @property
    def scalars(self) -> NDArray[np.float64]:
        """Task scalars by row, shape (n,), in [0, 1]. A view: valid until the next insert."""
        return self._scalars[: len(self._members)]

    @property
    def levels(self) -> NDArray[np.uint8]:
        """Reward vectors in whole steps, shape (n, d): programs of one reward niche have equal rows. A view."""
        return self._levels[: len(self._members)]

    def holds(self, digest: str) -> NDArray[np.bool_]:
        """Which rows are programs with this digest, shape (n,)."""
        held: NDArray[np.bool_] = self._digests[: len(self._members)] == np.bytes_(digest, "ascii")
        return held

    def accepts(self, program: Program) -> bool:
        """Whether some niche of the program is empty or held by a worse one."""
        return program.evaluation.infrastructure is None and any(
            self._wins(program, key) for key in self._keys(program)
        )

    def insert(self, program: Program) -> bool:
        """Offer a program to its niches; true when it is a member afterwards.

        A program that could not be judged (``evaluation.infrastructure``) is never a member.
        """
        if program.evaluation.infrastructure is not None or program.number in self._row_of:
            return program.number in self._row_of
        won = [key for key in self._keys(program) if self._wins(program, key)]
        if not won:
            return False
        self._append(program)
        for key in won:
            self._give(key, program.number)
        if len(self._patterns) > self._config.capacity:
            self._evict()
        return program.number in self._row_of

    def best(self, count: int) -> list[Program]:
        """The ``count`` members with the highest task scalar, best first; ties: shorter, then older."""
        rows = range(len(self._members))
        if count < len(self._members):  # everything at least as good as the count-th best
            threshold = np.partition(self.scalars, -count)[-count] if count else math.inf
            rows = np.flatnonzero(self.scalars >= threshold).tolist()
        return sorted((self._members[row] for row in rows), key=_rank)[:count]

    def cell(self, program: Program) -> tuple[int, ...]:
        """The program's cell in the feature grid."""
        return tuple(_bin(feature, program) for feature in self._config.features)

    def _keys(self, program: Program) -> tuple[_Key, ...]:
        pattern = _in_steps(self._vector(program), self._config.levels).tobytes()
        return (self.cell(program), pattern.rstrip(b"\0"))  # without trailing zeros: columns may be added later

    def _wins(self, program: Program, key: _Key) -> bool:
        holder = self._niches.get(key)
        return holder is None or _rank(program) < _rank(self._members[self._row_of[holder]])

    def _columns_with(self, program: Program) -> dict[str, int]:
        """The archive's components and their columns, those of the program that are new appended."""
        if all(name in self._columns for name in program.evaluation.components):
            return self._columns
        columns = dict(self._columns)
        for name in program.evaluation.components:
            columns.setdefault(name, len(columns))
        return columns

    def _vector(self, program: Program) -> NDArray[np.float64]:
        columns = self._columns_with(program)
        vector = np.zeros(len(columns))
        vector[[columns[name] for name in program.evaluation.components]] = program.evaluation.reward
        return vector

    def _append(self, program: Program) -> None:
        row, vector = len(self._members), self._vector(program)
        self._columns = self._columns_with(program)
        self._make_room(row + 1, len(vector))
        self._rewards[row] = vector
        self._levels[row] = _in_steps(vector, self._config.levels)
        self._scalars[row] = program.evaluation.scalar
        self._digests[row] = program.digest.encode()
        self._holds_pattern[row] = False
        self._members.append(program)
        self._row_of[program.number] = row
        self._niches_of[program.number] = set()

    def _make_room(self, rows: int, columns: int) -> None:
        wider = columns - self._rewards.shape[1]
        longer = len(self._scalars) if rows > len(self._scalars) else 0
        if wider or longer:
            self._rewards = np.pad(self._rewards, ((0, longer), (0, wider)))
            self._levels = np.pad(self._levels, ((0, longer), (0, wider)))
        if longer:
            self._scalars = np.pad(self._scalars, (0, longer))
            self._digests = np.concatenate([self._digests, np.zeros_like(self._digests)])
            self._holds_pattern = np.pad(self._holds_pattern, (0, longer))

    def _give(self, key: _Key, number: int) -> None:
        holder = self._niches.get(key)
        if holder is not None:
            self._take(key, holder)
        self._niches[key] = number
        self._niches_of[number].add(key)
        if isinstance(key, bytes):
            self._patterns[number] = key
            self._holds_pattern[self._row_of[number]] = True

    def _take(self, key: _Key, number: int) -> None:
        """Take a niche from its holder, who leaves the archive with the last one."""
        del self._niches[key]
        self._niches_of[number].discard(key)
        if isinstance(key, bytes):
            del self._patterns[number]
            self._holds_pattern[self._row_of[number]] = False
        if not self._niches_of[number]:
            self._remove(number)

    def _remove(self, number: int) -> None:
        del self._niches_of[number]
        row, last = self._row_of.pop(number), len(self._members) - 1
        moved = self._members.pop()
        if row != last:  # the last row fills the gap, so that the matrices stay compact
            self._members[row] = moved
            self._row_of[moved.number] = row
            for column in (self._rewards, self._levels, self._scalars, self._digests, self._holds_pattern):
                column[row] = column[last]

    def _evict(self) -> None:
        """Take the reward niche of the worst program, sparing whoever alone is best at some component."""
        rows = np.flatnonzero(self._holds_pattern[: len(self._members)])
        levels = self._levels[rows]
        top = levels == levels.max(axis=0)
        spared = top[:, top.sum(axis=0) == 1].any(axis=1)
        if not spared.all():
            rows = rows[~spared]
        scalars = self._scalars[rows]
        number = max(self._members[row].number for row in rows[scalars == scalars.min()])
        self._take(self._patterns[number], number)


def _rank(program: Program) -> tuple[float, int, int]:
    return (-program.evaluation.scalar, len(program.source), program.number)


def _in_steps(rewards: NDArray[np.float64], steps: int) -> NDArray[np.uint8]:
    # The small offset keeps values such as 0.3 / 0.1 from falling a step short.
    return np.floor(np.clip(rewards, 0.0, 1.0) * steps + 1e-9).astype(np.uint8)


def _bin(feature: FeatureConfig, program: Program) -> int:
    share = _share(feature, program)
    return 0 if math.isnan(share) else min(feature.bins - 1, max(0, int(min(max(share, 0.0), 1.0) * feature.bins)))


def _share(feature: FeatureConfig, program: Program) -> float:
    """Where the program lies along a feature, in [0, 1] (outside: clipped by the caller; nan: unknown)."""
    evaluation = program.evaluation
    if feature.name == "length":
        return math.log2(max(len(program.source), _SHORTEST) / _SHORTEST) / _DOUBLINGS
    if feature.name == "passed":
        passed = sum(status is Status.PASSED for status in evaluation.statuses)
        return passed / max(1, len(evaluation.statuses))
    if feature.name == "scalar":
        return evaluation.scalar
    assert feature.low is not None  # the config's validator saw to it
    assert feature.high is not None
    value = evaluation.metrics.get(feature.name.removeprefix(METRIC_PREFIX), math.nan)
    return (value - feature.low) / (feature.high - feature.low)
