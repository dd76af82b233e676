"""Closed forms and slow references."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evolve.randomness import generator
from trainer.estimators import ESTIMATORS
from trainer.estimators.vpo import dirichlet_weights, set_scores


def draw(count: int, d: int, seed: int = 0) -> np.ndarray:
    return dirichlet_weights(generator(seed, "test"), count, d, d, 1.0)[None]


@pytest.mark.parametrize(("d", "expected"), [(2, 0.75), (3, 11 / 18), (4, 25 / 48)])
def test_one_hot_answers_score_the_harmonic_number_over_d(d: int, expected: float) -> None:
    rewards = np.eye(d)[None, None]
    assert set_scores(rewards, draw(200_000, d))[0, 0] == pytest.approx(expected, abs=3e-3)


def test_identical_answers_score_the_mean_of_the_scalarisations() -> None:
    reward = np.array([0.2, 0.9, 0.5])
    weights = draw(100, 3)
    rewards = np.tile(reward, (1, 1, 4, 1))
    assert set_scores(rewards, weights)[0, 0] == pytest.approx(float((weights[0] @ reward).mean()))


def test_duplicates_and_zero_rows_change_nothing() -> None:
    weights = draw(100, 3)
    rewards = generator(1).random((1, 2, 2, 3))
    padded = np.concatenate([rewards, rewards[:, :, :1], np.zeros((1, 2, 1, 3))], axis=2)
    np.testing.assert_allclose(set_scores(padded, weights), set_scores(rewards, weights))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(1, 4), st.integers(1, 6))
def test_vpo_equals_its_definition(seed: int, group: int, m: int, d: int) -> None:
    rng = generator(seed)
    rewards = rng.random((2, group, m, d))
    weights = np.concatenate([draw(7, d, seed), draw(7, d, seed + 1)])
    found = ESTIMATORS["vpo"](rewards, np.ones((2, d), bool), weights, 1e-6)
    for p in range(2):
        scores = [np.mean([max(w @ r for r in rewards[p, g]) for w in weights[p]]) for g in range(group)]
        expected = (scores - np.mean(scores)) / (np.std(scores, ddof=1) + 1e-6)
        np.testing.assert_allclose(found[p], expected, atol=1e-9)


def test_grpo_uses_each_prompts_own_components() -> None:
    rewards = np.zeros((2, 2, 1, 3))
    rewards[0, 0, 0, :2] = 1  # d = 2: everything passed
    rewards[1, 1, 0, :] = [1, 0, 0]
    components = np.array([[True, True, False], [True, True, True]])
    found = ESTIMATORS["grpo"](rewards, components, np.zeros((2, 1, 3)), 0.0)
    np.testing.assert_allclose(found, [[2**-0.5, -(2**-0.5)], [-(2**-0.5), 2**-0.5]])


def test_a_group_of_equal_rollouts_has_no_advantage() -> None:
    rewards = np.full((1, 4, 2, 3), 0.5)
    for estimator in ESTIMATORS.values():
        np.testing.assert_array_equal(estimator(rewards, np.ones((1, 3), bool), draw(5, 3), 1e-6), np.zeros((1, 4)))


def test_weights_lie_on_the_simplex_of_the_prompts_components() -> None:
    weights = dirichlet_weights(generator(0), 50, 3, 5, 1.0)
    assert weights.shape == (50, 5)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert (weights[:, 3:] == 0).all()
    assert (weights >= 0).all()
