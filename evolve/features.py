"""Where a program lies in feature space, whose dimensions an archive divides into cells; each in [0, 1]."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evolve.config import METRIC_PREFIX, FeatureConfig
from evolve.program import Program, parse_python
from sandbox.verdict import Status

_SHORTEST = 16.0  # characters: everything shorter is in the first length bin
_SIMPLEST = 8.0  # syntax-tree nodes, likewise
_DOUBLINGS = 12.0  # 16 characters to 64 Ki characters, 8 nodes to 32 Ki nodes

Difference = Callable[[Program], float]
"""How differently a program behaves from the first one: mean absolute difference of reward vectors, in [0, 1]."""


def position(feature: FeatureConfig, program: Program, difference: Difference) -> float:
    """The program's place along a feature, in [0, 1]; 0 where the evaluator gave no such metric, or none that is a
    number."""
    share = _share(feature, program, difference)
    return 0.0 if math.isnan(share) else min(max(share, 0.0), 1.0)


def positions(features: tuple[FeatureConfig, ...], program: Program, difference: Difference) -> NDArray[np.float64]:
    """The program's point in feature space, shape (len(features),), in [0, 1]."""
    return np.array([position(feature, program, difference) for feature in features])


def in_bins(features: tuple[FeatureConfig, ...], point: NDArray[np.float64]) -> tuple[int, ...]:
    """The grid cell of a point: one bin per feature, from 0."""
    shares = point.tolist()
    return tuple(min(f.bins - 1, int(share * f.bins)) for f, share in zip(features, shares, strict=True))


def _share(feature: FeatureConfig, program: Program, difference: Difference) -> float:
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
        return difference(program)
    assert feature.low is not None  # the config's validator saw to it
    assert feature.high is not None
    value = evaluation.metrics.get(feature.name.removeprefix(METRIC_PREFIX), math.nan)
    return (value - feature.low) / (feature.high - feature.low)


def _size(source: str) -> float:
    """Nodes of a Python program's syntax tree; words and signs of any other text."""
    tree = parse_python(source)
    if tree is not None:
        return float(sum(1 for _ in ast.walk(tree)))
    return float(len(re.findall(r"\w+|[^\w\s]", source)))
