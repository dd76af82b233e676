"""Where a program lies in feature space, whose dimensions an archive divides into cells; each in [0, 1]."""

from __future__ import annotations

import ast
import math
import re

import numpy as np
from numpy.typing import NDArray

from evolve.config import METRIC_PREFIX, FeatureConfig
from evolve.embedding import direction
from evolve.files import split_files
from evolve.program import Program, parse_python
from sandbox.verdict import Status

_SHORTEST = 16.0  # characters: everything shorter is in the first length bin
_SIMPLEST = 8.0  # syntax-tree nodes, likewise
_DOUBLINGS = 12.0  # 16 characters to 64 Ki characters, 8 nodes to 32 Ki nodes


class Reference:
    """The first program that it is asked about: what ``diversity`` and ``embedding`` compare others with."""

    def __init__(self) -> None:
        self._source: str | None = None
        self._rewards: dict[str, float] = {}

    def difference(self, program: Program) -> float:
        """How differently a program behaves: mean absolute difference of reward vectors, in [0, 1]."""
        self._note(program)
        first, rewards = self._rewards, _rewards(program)
        names = first.keys() | rewards.keys()
        return sum(abs(first.get(name, 0.0) - rewards.get(name, 0.0)) for name in names) / max(1, len(names))

    def direction(self, program: Program, dimensions: int) -> list[float]:
        """How its code differs, a number in (0, 1) for each dimension; see :func:`evolve.embedding.direction`."""
        return direction(program.source, self._note(program), dimensions)

    def _note(self, program: Program) -> str:
        """The first program's source."""
        if self._source is None:
            self._source, self._rewards = program.source, _rewards(program)
        return self._source


def _rewards(program: Program) -> dict[str, float]:
    return dict(zip(program.evaluation.components, program.evaluation.reward, strict=True))


def positions(features: tuple[FeatureConfig, ...], program: Program, reference: Reference) -> NDArray[np.float64]:
    """The program's point in feature space, shape (sum of the features' widths,), in [0, 1].

    0 where the evaluator gave no such metric, or none that is a number.
    """
    shares: list[float] = []
    for feature in features:
        if feature.name == "embedding":
            shares.extend(reference.direction(program, feature.width))
        else:
            share = _share(feature, program, reference)
            shares.append(0.0 if math.isnan(share) else min(max(share, 0.0), 1.0))
    return np.array(shares)


def in_bins(features: tuple[FeatureConfig, ...], point: NDArray[np.float64]) -> tuple[int, ...]:
    """The grid cell of a point: one bin per dimension, from 0."""
    bins = [feature.bins for feature in features for _ in range(feature.width)]
    return tuple(min(count - 1, int(share * count)) for count, share in zip(bins, point.tolist(), strict=True))


def _share(feature: FeatureConfig, program: Program, reference: Reference) -> float:
    evaluation = program.evaluation
    if feature.name == "length":
        return math.log2(max(len(program.source), _SHORTEST) / _SHORTEST) / _DOUBLINGS
    if feature.name == "complexity":
        return math.log2(max(_size(program.source), _SIMPLEST) / _SIMPLEST) / _DOUBLINGS
    if feature.name == "passed":
        passed = sum(status is Status.PASSED for status in evaluation.statuses)
        return passed / max(1, len(evaluation.statuses))
    if feature.name == "scalar":
        return evaluation.scalar
    if feature.name == "diversity":
        return reference.difference(program)
    assert feature.low is not None  # the config's validator saw to it
    assert feature.high is not None
    value = evaluation.metrics.get(feature.name.removeprefix(METRIC_PREFIX), math.nan)
    return (value - feature.low) / (feature.high - feature.low)


def _size(source: str) -> float:
    """Nodes of a Python program's syntax tree; words and signs of any other text; the sum over several files."""
    files = split_files(source)
    if files is not None:
        return sum(map(_size, files.values()))
    tree = parse_python(source)
    if tree is not None:
        return float(sum(1 for _ in ast.walk(tree)))
    return float(len(re.findall(r"\w+|[^\w\s]", source)))
