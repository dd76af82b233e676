"""Parents and inspirations: what each strategy prefers, and how often."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolve.archive import NicheArchive, make_archive
from evolve.config import ArchiveConfig, SelectionConfig
from evolve.lexicase import downsampled_lexicase, epsilon_lexicase, lexicase
from evolve.randomness import generator
from evolve.selection import (
    STRATEGIES,
    dirichlet_best,
    select_inspirations,
    select_mate,
    select_parent,
    simplex_weights,
)
from tests.evolve.builders import program

matrices = st.integers(1, 5).flatmap(
    lambda d: st.lists(st.lists(st.integers(0, 16), min_size=d, max_size=d), min_size=1, max_size=12)
)


def _archive(*rewards: list[float]) -> NicheArchive:
    archive = make_archive(ArchiveConfig(features=()))
    for number, reward in enumerate(rewards):
        archive.insert(program(number, reward))
    return archive


def _only(strategy: str, **changes: float) -> SelectionConfig:
    return SelectionConfig.only(strategy, **changes)


@given(matrices, st.integers(0, 1000))
def test_lexicase_never_picks_a_dominated_row(rows: list[list[int]], key: int) -> None:
    levels = np.array(rows, dtype=np.uint8)
    chosen = levels[lexicase(levels, generator(key, "lexicase"))]
    dominates = (levels >= chosen).all(axis=1) & (levels > chosen).any(axis=1)
    assert not dominates.any()
    assert (chosen == levels.max(axis=0)).any()


def test_lexicase_gives_each_specialist_its_share() -> None:
    levels = np.array([[1, 1, 1, 0], [0, 0, 0, 1], [0, 0, 1, 0]], dtype=np.uint8)
    picks = Counter(lexicase(levels, generator(key, "share")) for key in range(2000))
    assert set(picks) == {0, 1}
    assert picks[1] / 2000 == pytest.approx(0.25, abs=0.04)  # first whenever its own test comes first


@given(matrices, st.integers(0, 1000), st.floats(0.01, 100.0))
def test_dirichlet_never_picks_a_strictly_dominated_row(rows: list[list[int]], key: int, c: float) -> None:
    rewards = np.array(rows, dtype=float) / 16
    chosen = rewards[dirichlet_best(rewards, c, generator(key, "dirichlet"))]
    assert not (rewards > chosen + 1e-9).all(axis=1).any()


@given(st.integers(1, 2000), st.floats(1e-3, 1e3), st.integers(0, 100))
def test_simplex_weights_lie_on_the_simplex(d: int, c: float, key: int) -> None:
    weights = simplex_weights(d, c, generator(key, "simplex"))
    assert weights.shape == (d,)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= 0).all()


def test_disjoint_specialists_beat_a_mediocre_program_at_any_dimension() -> None:
    for d in (3, 30):
        specialists = np.kron(np.eye(3), np.ones(d // 3))
        rewards = np.vstack([specialists, np.full(d, 0.5)])
        picks = Counter(dirichlet_best(rewards, 3.0, generator(key, d)) for key in range(400))
        assert sum(picks[row] for row in range(3)) > 200


def test_elite_exploit_and_explore() -> None:
    archive = _archive([1, 0, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 0])
    picks = {
        strategy: Counter(
            select_parent(archive, _only(strategy, elites=2), generator(key, strategy))[0].number for key in range(400)
        )
        for strategy in ("elite", "exploit", "explore")
    }
    assert set(picks["elite"]) == {1}
    assert set(picks["exploit"]) == {1, 2}
    assert set(picks["explore"]) == {0, 1, 2, 3}
    assert picks["explore"][3] == pytest.approx(100, abs=35)


def test_strategies_are_drawn_by_weight_and_named() -> None:
    archive = _archive([1, 0], [0, 1])
    config = SelectionConfig(lexicase=3, dirichlet=1, elite=0, exploit=0, explore=0)
    names = Counter(select_parent(archive, config, generator(key, "parent"))[1] for key in range(1000))
    assert set(names) == {"lexicase", "dirichlet"}
    assert names["lexicase"] == pytest.approx(750, abs=60)


def test_inspirations_complement_the_parent_and_are_sorted() -> None:
    archive = _archive([1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 1, 1], [0, 0, 0, 0])
    parent = next(member for member in archive.members if member.number == 0)
    for key in range(20):
        chosen = select_inspirations(archive, parent, 2, SelectionConfig(), generator(key, "inspirations"))
        numbers = [member.number for member in chosen]
        assert numbers[0] == 3  # covers all that the parent does not
        assert 0 not in numbers
        assert 4 not in numbers
    every = select_inspirations(archive, parent, 9, SelectionConfig(), generator(0, "inspirations"))
    assert [member.number for member in every] == [3, 1, 2]
    assert select_inspirations(_archive([1, 0]), program(0, [1, 0]), 3, SelectionConfig(), generator(0)) == []


def test_a_parent_that_is_no_longer_a_member_still_gets_inspirations() -> None:
    gone = program(99, [1, 0])
    chosen = select_inspirations(_archive([0, 1]), gone, 3, SelectionConfig(), generator(0, "inspirations"))
    assert [member.number for member in chosen] == [0]


@given(matrices, st.integers(0, 100), st.sampled_from(sorted(STRATEGIES)))
def test_every_strategy_chooses_a_member_and_the_same_again(rows: list[list[int]], key: int, name: str) -> None:
    archive = _archive(*[[value / 16 for value in row] for row in rows])
    config = _only(name)
    chosen, named = select_parent(archive, config, generator(key, "any"))
    assert named == name
    assert chosen.number in archive
    assert select_parent(archive, config, generator(key, "any"))[0] is chosen


@given(matrices, st.integers(0, 1000))
def test_epsilon_lexicase_without_margin_is_lexicase(rows: list[list[int]], key: int) -> None:
    levels = np.array(rows, dtype=np.uint8)
    assert epsilon_lexicase(levels / 16, 0.0, generator(key)) == lexicase(levels, generator(key))


def test_epsilon_lexicase_forgives_small_differences() -> None:
    rewards = np.array([[0.9, 0.1], [0.85, 0.9], [0.1, 0.95]])
    picks = Counter(epsilon_lexicase(rewards, 0.06, generator(key)) for key in range(300))
    assert picks == {1: 300}
    by_deviation = Counter(epsilon_lexicase(rewards, None, generator(key)) for key in range(300))
    assert by_deviation[1] > 250


def test_downsampled_lexicase_sees_a_share_of_the_tests() -> None:
    levels = np.array([[1, 1, 1, 0], [0, 0, 0, 1]], dtype=np.uint8)
    picks = Counter(downsampled_lexicase(levels, 0.25, generator(key)) for key in range(2000))
    assert picks[1] / 2000 == pytest.approx(0.25, abs=0.04)
    assert downsampled_lexicase(levels[:1], 0.01, generator(0)) == 0


def test_alpha_replaces_c_over_d() -> None:
    spread = [simplex_weights(20, 1.0, generator(key), alpha=100.0).max() for key in range(100)]
    assert max(spread) < 0.12  # near the middle of the simplex
    corners = [simplex_weights(20, 1.0, generator(key)).max() for key in range(100)]
    assert np.median(corners) > 0.5


def test_complement_adds_to_the_best() -> None:
    archive = _archive([1, 1, 1, 0, 0], [1, 1, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1])
    picks = Counter(select_parent(archive, _only("complement"), generator(key))[0].number for key in range(300))
    assert set(picks) == {2, 3}
    assert picks[2] == pytest.approx(150, abs=40)


def test_a_mate_passes_what_the_parent_does_not() -> None:
    archive = _archive([1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0])
    parent = archive[0]
    mates = Counter(
        mate.number for key in range(200) if (mate := select_mate(archive, parent, SelectionConfig(), generator(key)))
    )
    assert mates[2] > 150
    assert set(mates) <= {2, 3}
    nothing = _archive([1, 1], [1, 0])
    assert select_mate(nothing, nothing[0], SelectionConfig(), generator(0)) is None
