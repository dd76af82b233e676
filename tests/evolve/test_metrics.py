"""Metrics against enumeration and known values."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolve.metrics import (
    best_at_k,
    best_at_t,
    bootstrap_interval,
    chain_best_at_k,
    chain_pass_at_k,
    expected_best_at_k,
    pass_at_k,
    pass_at_t,
    reward_diversity,
    running_best,
    solved_by_t,
)

unit = st.floats(0.0, 1.0, allow_nan=False)


def test_pass_at_t_counts_runs_solved_by_each_iteration() -> None:
    first = [3, None, 0, 3, 9]
    assert solved_by_t(first, 4).tolist() == [1, 1, 1, 3, 3]
    assert pass_at_t(first, 4).tolist() == [0.2, 0.2, 0.2, 0.6, 0.6]
    assert pass_at_t([], 2).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="negative"):
        solved_by_t([-1], 3)


def test_best_at_t_keeps_the_best_of_runs_that_ended() -> None:
    runs = [[0.0, 0.5, 0.25], [0.5, 1.0], []]
    assert running_best(runs, 3).tolist() == [[0, 0.5, 0.5, 0.5], [0.5, 1, 1, 1], [0, 0, 0, 0]]
    assert best_at_t(runs[:2], 3).tolist() == [0.25, 0.75, 0.75, 0.75]
    assert best_at_t([], 1).tolist() == [0, 0]


@given(st.lists(st.one_of(st.none(), st.integers(0, 20)), max_size=12), st.integers(0, 15))
def test_pass_at_t_is_monotone(first: list[int | None], horizon: int) -> None:
    curve = pass_at_t(first, horizon)
    assert curve.shape == (horizon + 1,)
    assert (np.diff(curve) >= 0).all()
    assert ((curve >= 0) & (curve <= 1)).all()


@given(st.integers(1, 8), st.data())
def test_pass_at_k_equals_enumeration(n: int, data: st.DataObject) -> None:
    correct, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    hits = [any(i < correct for i in chosen) for chosen in combinations(range(n), k)]
    assert pass_at_k(n, correct, k) == pytest.approx(np.mean(hits))


def test_pass_at_k_known_values_and_errors() -> None:
    assert pass_at_k(200, 1, 100) == pytest.approx(0.5)
    assert pass_at_k(5, 5, 1) == 1.0
    assert pass_at_k(100_000, 0, 1000) == 0.0
    with pytest.raises(ValueError, match="k must be"):
        pass_at_k(5, 1, 6)
    with pytest.raises(ValueError, match="correct"):
        pass_at_k(5, 6, 1)


@given(st.lists(unit, min_size=1, max_size=7), st.data())
def test_best_at_k_equals_enumeration(values: list[float], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(values)))
    expected = np.mean([max(chosen) for chosen in combinations(values, k)])
    assert best_at_k(values, k) == pytest.approx(expected)


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.data())
def test_pass_at_k_is_best_at_k_of_zeros_and_ones(solved: list[bool], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(solved)))
    assert best_at_k(solved, k) == pytest.approx(pass_at_k(len(solved), sum(solved), k))


def _enumerate_chains(table: np.ndarray, k: int) -> float:
    chains, m = table.shape
    whole, rest = divmod(k, m)
    results = []
    for order in permutations(range(chains), whole + (rest > 0)):
        answers = [table[c] for c in order[:whole]] + ([table[order[-1], :rest]] if rest else [])
        results.append(max(float(part.max()) for part in answers))
    return float(np.mean(results))


@given(st.integers(1, 5), st.integers(1, 3), st.data())
def test_chain_best_at_k_equals_enumeration(chains: int, m: int, data: st.DataObject) -> None:
    table = np.array(data.draw(st.lists(st.lists(unit, min_size=m, max_size=m), min_size=chains, max_size=chains)))
    k = data.draw(st.integers(1, chains * m))
    assert chain_best_at_k(table, k) == pytest.approx(_enumerate_chains(table, k))


def test_chain_best_at_k_is_not_the_independent_formula() -> None:
    table = [[0.0, 1.0], [0.0, 1.0]]  # the second answer is always right, the first never
    assert chain_best_at_k(table, 1) == 0.0
    assert chain_best_at_k(table, 2) == 1.0
    assert best_at_k(np.ravel(table), 1) == 0.5
    assert chain_pass_at_k([[False, True], [False, False]], 2) == 0.5
    with pytest.raises(ValueError, match="shape"):
        chain_best_at_k([0.5], 1)
    with pytest.raises(ValueError, match="k must be"):
        chain_best_at_k(table, 5)


def test_chains_of_one_answer_are_independent_samples() -> None:
    values = [0.1, 0.9, 0.4, 0.4]
    for k in range(1, 5):
        assert chain_best_at_k(np.reshape(values, (4, 1)), k) == pytest.approx(best_at_k(values, k))


def test_expected_best_of_one_hot_answers_is_the_harmonic_number_over_d() -> None:
    for d, exact in ((2, 0.75), (3, 0.6111), (4, 0.5208)):
        assert expected_best_at_k(np.eye(d), d, weights=20_000) == pytest.approx(exact, abs=0.01)
        assert expected_best_at_k(np.eye(d)[None], d, weights=20_000) == pytest.approx(exact, abs=0.01)
    assert expected_best_at_k(np.full((3, 4), 0.25), 2) == pytest.approx(0.25)
    with pytest.raises(ValueError, match="shape"):
        expected_best_at_k([0.5], 1)


@given(st.integers(0, 7), st.integers(1, 4), st.data())
def test_reward_diversity_equals_pairwise_distances(n: int, d: int, data: st.DataObject) -> None:
    pool = np.array(data.draw(st.lists(st.lists(unit, min_size=d, max_size=d), min_size=n, max_size=n))).reshape(n, d)
    pairs = [np.abs(a - b).sum() for a, b in combinations(pool, 2)]
    assert reward_diversity(pool) == pytest.approx(np.mean(pairs) if pairs else 0.0, abs=1e-9)


def test_bootstrap_interval_covers_the_mean_and_is_reproducible() -> None:
    values = np.random.default_rng(0).random((40, 3))
    low, high = bootstrap_interval(values)
    assert low.shape == high.shape == (3,)
    assert (low < values.mean(axis=0)).all()
    assert (values.mean(axis=0) < high).all()
    assert np.array_equal(low, bootstrap_interval(values)[0])
    width = high - low
    narrow_low, narrow_high = bootstrap_interval(values, level=0.5)
    assert (narrow_high - narrow_low < width).all()
    # The normal approximation of the same interval.
    assert width == pytest.approx(2 * 1.96 * values.std(axis=0) / np.sqrt(40), rel=0.15)
    constant = bootstrap_interval([0.5, 0.5])
    assert float(constant[0]) == float(constant[1]) == 0.5
    with pytest.raises(ValueError, match="at least one row"):
        bootstrap_interval([])
