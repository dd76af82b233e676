"""Metrics against enumeration and known values."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolve.config import SearchConfig
from evolve.history import best_curve, pass_curve, run_figures, trace
from evolve.metrics import (
    AXES,
    Interval,
    best_at_k,
    best_at_t,
    bootstrap_interval,
    chain_best_at_k,
    chain_pass_at_k,
    coverage,
    curve_over,
    expected_best_at_k,
    mean_interval,
    pass_at_k,
    pass_at_t,
    qd_score,
    reward_diversity,
    running_best,
    solved_by_t,
    value_at,
)
from tests.evolve.world import SEED_SOURCE, judge, new_search, run

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


def test_coverage_and_qd_score() -> None:
    assert coverage([[1, 0, 0.5], [0, 1, 0.9]]) == pytest.approx(2 / 3)
    assert coverage(np.zeros((0, 3))) == 0.0
    assert qd_score(["a", "b", "a"], [0.5, 0.25, 0.75]) == 1.0
    assert qd_score([], []) == 0.0


def test_a_curve_over_what_was_spent_is_a_step_curve() -> None:
    assert value_at([0.0, 0.5, 1.0], [0, 10, 30], [0, 9, 10, 29, 30, 99]).tolist() == [0.0, 0.0, 0.5, 0.5, 1.0, 1.0]
    curve = curve_over([[0.0, 1.0], [0.0, 0.0, 1.0]], [[0, 4], [0, 2, 6]])
    assert curve.x.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert curve.mean.tolist() == [0, 0, 0, 0, 0.5, 0.5, 1]
    assert (curve.low <= curve.mean).all()
    assert (curve.mean <= curve.high).all()
    assert len(curve_over([[0.0, 1.0]], [[0, 1e6]], points=11).x) == 11
    with pytest.raises(ValueError, match="needs runs"):
        curve_over([], [])


def test_any_figure_gets_an_interval() -> None:
    interval = mean_interval([best_at_k(pool, 2) for pool in ([0, 1], [0, 0], [1, 1], [0, 1])])
    assert (interval.mean, interval.low <= 0.75 <= interval.high) == (0.75, True)
    assert mean_interval([0.5]) == Interval(0.5, 0.5, 0.5)


def test_the_trace_of_a_run() -> None:
    config = SearchConfig.model_validate({"answers": 2, "models": [{"name": "m", "completion_price": 1.0}]})
    search = new_search(config)
    seed = search.begin(judge(SEED_SOURCE))
    traces = [trace(seed, run(search, 60), models=config.models)]
    assert traces[0].solved_at == search.first_solved
    assert traces[0].best.tolist() == sorted(traces[0].best)
    for axis in AXES:
        assert traces[0].spent[axis][-1] == getattr(search.spent, axis)
    figures = traces[0].figures
    assert figures["solved"] == figures["best"] == figures["coverage"] == 1.0
    assert 0 < figures["edit_success"] < 1
    assert figures["qd_score"] > 1.0
    for axis in ("iterations", "tokens", "calls"):
        best, passed = best_curve(traces, axis), pass_curve(traces, axis)
        assert best.x[-1] == traces[0].spent[axis][-1]
        assert best.mean[-1] == passed.mean[-1] == 1.0
        assert passed.mean[-2] == 0.0
    assert run_figures(traces)["best"] == Interval(1.0, 1.0, 1.0)
    assert trace(seed, []).figures["edit_success"] == 0.0
    with pytest.raises(ValueError, match="at least one run"):
        run_figures([])
