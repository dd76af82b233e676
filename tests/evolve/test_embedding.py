"""Embeddings: points of programs by their code, and archives over them."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evolve.archive import make_archive
from evolve.config import ArchiveConfig, FeatureConfig
from evolve.embedding import MAX_DIMENSIONS, direction, embedding
from tests.evolve.builders import program

LOOP = "def f(xs):\n    total = 0\n    for x in xs:\n        total += x\n    return total\n"
RENAMED = "def f(values):\n    # the sum\n    s = 0\n    for value in values:\n        s += value\n    return s\n"
PRODUCT = LOOP.replace("+=", "*=").replace("= 0", "= 1")
SORTED = "def f(xs):\n    return sorted(xs, key=lambda pair: (pair[1], -pair[0]))[:3]\n"
FUNCTIONS = [
    textwrap.dedent(inspect.getsource(function))
    for _, function in inspect.getmembers(textwrap, inspect.isfunction)
    + inspect.getmembers(inspect, inspect.isfunction)
    if function.__module__ in ("textwrap", "inspect")
]


def distance(one: str, other: str) -> float:
    return float(np.linalg.norm(embedding(one) - embedding(other)))


def test_layout_comments_and_variable_names_do_not_count() -> None:
    assert distance(LOOP, RENAMED) == 0.0
    assert 0 < distance(LOOP, PRODUCT) < distance(LOOP, SORTED)


def test_the_projection_keeps_distances() -> None:
    pairs = [(FUNCTIONS[i], FUNCTIONS[i + 1]) for i in range(0, 60, 2)]
    ratios = [distance(*pair) / MAX_DIMENSIONS**0.5 for pair in pairs]
    assert 0.8 < np.mean(ratios) < 2**0.5  # functions that share little are about 1.06 apart


def test_a_program_with_one_change_is_nearest_to_its_original() -> None:
    functions = FUNCTIONS[:60]
    points = np.array([embedding(source) for source in functions])
    found = 0
    for place, source in enumerate(functions):
        tree = ast.parse(source)
        for node in [node for node in ast.walk(tree) if isinstance(node, ast.Return)][-1:]:
            node.value = ast.Constant(12345)
        changed = embedding(ast.unparse(tree))
        found += int(np.argmin(((points - changed) ** 2).sum(axis=1))) == place
    assert found >= 55


def test_points_are_the_same_in_every_process() -> None:
    code = f"from evolve.embedding import embedding; print(embedding({SORTED!r}).tolist())"
    root = Path(__file__).parents[2]
    said = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True).stdout
    assert said.strip() == str(embedding(SORTED).tolist())


@given(st.text(max_size=200), st.text(max_size=200), st.integers(1, MAX_DIMENSIONS))
def test_any_text_has_a_point(source: str, origin: str, dimensions: int) -> None:
    place = direction(source, origin, dimensions)
    assert len(place) == dimensions
    assert all(0.0 < value < 1.0 for value in place)
    assert direction(source, source, dimensions) == [0.5] * dimensions


@pytest.mark.parametrize("kind", ["grid", "cvt"])
def test_archives_keep_programs_of_different_code(kind: str) -> None:
    feature = FeatureConfig(name="embedding", dimensions=3 if kind == "grid" else 8)
    config = ArchiveConfig.model_validate({"kind": kind, "features": (feature,), "capacity": 1})
    archive = make_archive(config)
    seed = program(0, [1, 1], source=LOOP)
    assert archive.insert(seed)
    assert archive.cell(seed) == ((6, 6, 6) if kind == "grid" else archive.cell(program(1, [0, 1], source=RENAMED)))
    assert not archive.insert(program(1, [0, 1], source=RENAMED))
    assert archive.insert(program(2, [0, 1], source=SORTED))  # worse, but nothing of its kind is there
    assert len(archive.cell(seed)) == (3 if kind == "grid" else 1)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"features": [{"name": "length", "dimensions": 2}]}, "has one dimension"),
        ({"features": [{"name": "embedding", "dimensions": 4}, {"name": "length"}]}, "at most 4 dimensions, not 5"),
        ({"features": [{"name": "embedding", "dimensions": 33}]}, "less than or equal to 32"),
        ({"features": [{"name": "embedding", "low": 0.0}]}, "fixed range"),
    ],
)
def test_mistakes_are_named(body: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ArchiveConfig.model_validate(body)
