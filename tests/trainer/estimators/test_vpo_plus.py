"""vpo_plus: against a slow reference, with each part switched off, and each part alone."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from evolve.randomness import generator
from tests.trainer.estimators import references
from tests.trainer.estimators.references import random_groups, shapes
from trainer.estimators.accuracy import advantage_error, vpo_plus_config
from trainer.estimators.config import VpoConfig, VpoPlusConfig
from trainer.estimators.gate import closedness, mean_correlation
from trainer.estimators.groups import Groups, make_groups
from trainer.estimators.merge import blocks_of
from trainer.estimators.noise import BLOCKS, block_means, integration_error
from trainer.estimators.vpo import set_scores, vpo
from trainer.estimators.vpo_plus import vpo_plus, vpo_plus_weights
from trainer.estimators.weights import dirichlet_weights


def advantages(groups: Groups, *, seed: int = 0, step: int = 0, **options: Any) -> np.ndarray:
    config = VpoPlusConfig(**{"weights": 64, **options})
    return vpo_plus(groups, vpo_plus_weights(groups, config, seed, step), config)


def reference(groups: Groups, p: int, weights: np.ndarray, config: VpoPlusConfig) -> np.ndarray:
    """Advantages (n, m) of one group's judged rollouts, in loops; weights (K, D)."""
    members = np.flatnonzero(groups.valid[p])
    rewards, scalars = groups.rewards[p, members], groups.scalars[p, members]
    n, m = scalars.shape
    rows = [row[groups.components[p]] for row in rewards.reshape(n * m, -1) if row.any()]
    varying = [column for column in np.transpose(rows) if np.ptp(column) > 0] if rows else []
    correlations = [np.corrcoef(a, b)[0, 1] for i, a in enumerate(varying) for b in varying[:i]]
    mean = statistics.fmean(correlations) if correlations else 0.0
    closed = 0.0 if config.gate is None else min(1, max(0, (mean - config.gate[0]) / (config.gate[1] - config.gate[0])))

    def credit(subset: np.ndarray) -> np.ndarray:
        found = np.zeros((n, m))
        for g in range(n):
            for i in range(m):
                whole = references.set_score(rewards[g], subset)
                before = references.set_score(rewards[g, :i], subset) if i else 0.0
                found[g, i] = (1 - closed) * (whole - config.baseline * before)
        return found

    total = credit(weights) + closed * (scalars if config.baseline else scalars.mean(axis=1, keepdims=True))
    centred = total - total.mean(axis=0)
    runs = np.stack([credit(run) for run in weights.reshape(BLOCKS, -1, weights.shape[1])])
    runs = runs - runs.mean(axis=1, keepdims=True)
    error = np.sqrt((runs.var(axis=0, ddof=1) / BLOCKS).sum() / ((n - 1) * m))
    deviation = np.sqrt((centred**2).sum() / ((n - 1) * m))
    return centred / (max(deviation, error / config.noise if config.noise else 0) + config.epsilon)


@pytest.mark.parametrize("options", [{}, {"baseline": 0}, {"gate": (-0.5, 0.5)}, {"noise": 0}, {"sobol": False}])
@settings(max_examples=12, deadline=None)
@given(shape=shapes)
def test_it_equals_its_definition(options: dict[str, Any], shape: tuple[int, ...]) -> None:
    groups = random_groups(*shape, fail=0.1)
    config = VpoPlusConfig(**{"weights": 32, **options})
    weights = vpo_plus_weights(groups, config, 0, 0)
    found = vpo_plus(groups, weights, config)
    np.testing.assert_array_equal(found[~groups.valid], 0)
    for p in range(len(found)):
        if groups.valid[p].sum() >= 2:
            expected = reference(groups, p, weights[p], config)
            np.testing.assert_allclose(found[p, groups.valid[p]], expected, atol=1e-7)
        else:
            np.testing.assert_array_equal(found[p], 0)


@settings(max_examples=30, deadline=None)
@given(shape=shapes)
def test_with_every_part_off_it_is_vpo(shape: tuple[int, ...]) -> None:
    groups = random_groups(*shape, fail=0.1)
    for config in (VpoConfig(), VpoConfig(alpha=0.5, weights=7, deviation="population")):
        drawn = dirichlet_weights(groups.components, groups.prompts, config.weights, config.alpha, 3, 5)
        plus = vpo_plus_config(config)
        weights = vpo_plus_weights(groups, plus, 3, 5)
        np.testing.assert_allclose(weights, drawn)
        np.testing.assert_allclose(vpo_plus(groups, weights, plus), vpo(groups, drawn, config), atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(shape=shapes)
def test_the_order_of_rollouts_does_not_matter(shape: tuple[int, ...]) -> None:
    groups = random_groups(*shape, fail=0.1)
    order = generator(shape[0], "order").permutation(shape[2])
    moved = make_groups(groups.rewards[:, order], components=groups.components, failed=groups.failed[:, order])
    np.testing.assert_allclose(advantages(moved), advantages(groups)[:, order], atol=1e-9)


def test_failed_rollouts_are_masked_whatever_stands_there() -> None:
    rewards = generator(4).random((1, 6, 2, 3))
    failed = np.zeros((1, 6, 2), bool)
    failed[0, 2, 1] = failed[0, 5] = True
    found = advantages(make_groups(rewards, failed=failed))
    np.testing.assert_array_equal(found[0, [2, 5]], 0)
    rest = advantages(make_groups(np.delete(rewards, [2, 5], axis=1)))
    np.testing.assert_allclose(np.delete(found, [2, 5], axis=1), rest, atol=1e-12)


def test_padded_components_change_nothing() -> None:
    rewards = generator(2).random((1, 6, 3, 3))
    wide = np.full((2, 6, 3, 5), 0.7)
    wide[0, ..., [0, 1, 3]] = np.moveaxis(rewards[0], -1, 0)
    components = [[True, True, False, True, False], [True] * 5]
    np.testing.assert_allclose(
        advantages(make_groups(wide, components=components))[0], advantages(make_groups(rewards))[0]
    )


def test_missing_and_repeated_answers_change_no_other_credit() -> None:
    rewards = generator(1).random((1, 6, 2, 4))
    padded = np.concatenate([rewards, rewards[:, :, :1], np.zeros((1, 6, 1, 4))], axis=2)
    options = {"concentration": 3.0, "gate": None, "noise": 0, "epsilon": 0}
    found, alone = (advantages(make_groups(table), **options)[0] for table in (padded, rewards))
    ratio = found[:, :2] / alone
    np.testing.assert_allclose(ratio, ratio[0, 0])  # the deviation is pooled over more places; nothing else changes


def test_what_answers_are_worth_depends_on_earlier_ones_alone() -> None:
    """Two equal good answers: the first earns the chain's score, the second only what b leaves of it."""
    rewards = np.zeros((1, 2, 2, 2))
    rewards[0, 0] = [1, 0]
    found = advantages(make_groups(rewards), gate=None)[0]
    assert found[0, 1] / found[0, 0] == pytest.approx(0.35, abs=1e-6)


@pytest.mark.parametrize("sobol", [True, False])
def test_weights_lie_on_the_simplex_of_the_prompts_components(sobol: bool) -> None:
    groups = random_groups(11, 3, 4, 2, 6)
    weights = vpo_plus_weights(groups, VpoPlusConfig(weights=128, sobol=sobol), 0, 0)
    assert weights.shape == (3, 128, 6)
    np.testing.assert_allclose(weights.sum(axis=2), 1)
    assert (weights >= 0).all()
    assert not weights.transpose(0, 2, 1)[~groups.components].any()


def test_merging_is_by_equal_columns() -> None:
    answers = np.array([[1, 0, 1, 0.5], [0, 1, 0, 0.5]])
    assert blocks_of(answers).tolist() == [0, 1, 0, 2]


def test_merging_changes_no_expectation_and_lowers_the_error() -> None:
    kinds = (generator(3).random((8, 3, 4)) < 0.4) * 1.0
    groups = make_groups(np.tile(kinds, 6)[None])
    apart, merged = VpoPlusConfig(weights=256, merge=False), VpoPlusConfig(weights=256)
    scores = [
        np.mean([set_scores(groups.rewards, vpo_plus_weights(groups, c, 0, step))[0] for step in range(16)], axis=0)
        for c in (apart, merged)
    ]
    np.testing.assert_allclose(*scores, atol=4e-3)
    errors = [advantage_error(groups, config) for config in (apart, merged)]
    assert errors[1] < errors[0] / 4


def test_sobol_weights_err_less_than_pseudo_random_ones() -> None:
    groups = make_groups((generator(5).random((4, 8, 3, 16)) < 0.4) * 1.0)
    errors = {
        sobol: advantage_error(groups, VpoPlusConfig(weights=2048, sobol=sobol, noise=0), draws=2)
        for sobol in (True, False)
    }
    assert errors[True] < 0.015
    assert errors[True] < errors[False] / 3
    assert advantage_error(groups, VpoConfig(), draws=2) > 0.06


@pytest.mark.parametrize(("d", "count"), [(1, 256), (6, 256), (7, 512), (10, 1024), (12, 2048), (16, 4096)])
def test_the_number_of_weights_follows_the_components_that_differ(d: int, count: int) -> None:
    rewards = np.tile(generator(8).random((2, 3, 2, d)), 3)
    rewards[0] = 0.5
    weights = vpo_plus_weights(make_groups(rewards), VpoPlusConfig(), 0, 0)
    assert weights.shape == (2, count, 3 * d)
    assert [np.count_nonzero(weights[p].any(axis=1)) for p in (0, 1)] == [256, count]


def test_a_prompt_counts_its_own_weights_whatever_others_need() -> None:
    few, many = (generator(8, d).random((1, 6, 3, d)) for d in (4, 16))
    both = np.zeros((2, 6, 3, 16))
    both[0, ..., :4], both[1] = few[0], many[0]
    components = np.array([[True] * 4 + [False] * 12, [True] * 16])
    config = VpoPlusConfig()
    groups = make_groups(both, components=components)
    found = vpo_plus(groups, vpo_plus_weights(groups, config, 0, 0), config)
    for p, rewards in enumerate((few, many)):
        alone = make_groups(rewards, prompts=[p])
        np.testing.assert_allclose(found[p], vpo_plus(alone, vpo_plus_weights(alone, config, 0, 0), config)[0])


@pytest.mark.parametrize("d", [4, 6, 8, 10, 12, 16])
def test_that_number_is_enough(d: int) -> None:
    groups = make_groups((generator(5).random((4, 8, 3, d)) < 0.4) * 1.0)
    assert advantage_error(groups, VpoPlusConfig(noise=0), draws=2) < 0.01


@pytest.mark.parametrize(("sobol", "low", "high"), [(False, 0.8, 1.25), (True, 1.0, 6.0)])
def test_the_estimated_error_is_about_the_error(sobol: bool, low: float, high: float) -> None:
    """From one draw of weights, against the scatter over 40 draws; for Sobol points an upper estimate."""
    rewards = (generator(6).random((8, 1, 8)) < 0.4) * 1.0
    groups, config = make_groups(rewards[None]), VpoPlusConfig(weights=256, sobol=sobol)
    credits, estimates = [], []
    for step in range(40):
        values = (rewards @ vpo_plus_weights(groups, config, 0, step)[0].T).transpose(1, 0, 2)
        credits.append(values.mean(axis=-1) - values.mean())
        estimates.append(integration_error(block_means(values), "unbiased"))
    scatter = np.sqrt(np.var(credits, axis=0, ddof=1).sum() / 7)
    assert low < np.sqrt(np.mean(np.square(estimates))) / scatter < high


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(2, 5))
def test_mean_correlation_equals_numpys(seed: int, n: int, d: int) -> None:
    answers = generator(seed).random((n, d))
    matrix = np.corrcoef(answers.T)
    assert mean_correlation(answers) == pytest.approx(matrix[np.triu_indices(d, 1)].mean(), abs=1e-9)
    padded = np.concatenate([answers, np.zeros((3, d))])
    assert mean_correlation(padded) == mean_correlation(answers)


def test_correlation_needs_something_to_correlate() -> None:
    assert mean_correlation(np.zeros((4, 3))) == 0
    assert mean_correlation(np.ones((4, 3))) == 0
    assert mean_correlation(np.array([[1.0, 0.2], [1.0, 0.4]])) == 0
    assert [closedness(value, (0.8, 0.95)) for value in (0.5, 0.8, 0.875, 0.95, 1.0)] == pytest.approx(
        [0, 0, 0.5, 1, 1]
    )
    assert closedness(1.0, None) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": 100}, "`weights` must be a power of two for Sobol points, not 100"),
        ({"alpha": 1.0, "concentration": 3.0}, "give `concentration`"),
        ({"gate": (0.9, 0.8)}, "`gate` must be two increasing correlations"),
        ({"baseline": 1.5}, "less than or equal to 1"),
        ({"noize": 0.1}, "did you mean 'noise'"),
    ],
)
def test_wrong_settings_are_explained(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        VpoPlusConfig(**options)
