"""Every baseline and VPO against slow references; masks, variable d, and what must change nothing."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from pydantic import TypeAdapter, ValidationError

from evolve.randomness import generator
from tests.trainer.estimators import references
from tests.trainer.estimators.references import random_groups, shapes
from trainer.estimators import ESTIMATORS
from trainer.estimators.config import EstimatorConfig
from trainer.estimators.groups import Groups, make_groups
from trainer.estimators.max_at_k import subset_maxima
from trainer.estimators.vpo import set_scores

EPSILON = 1e-6


def settings_of(name: str, **options: Any) -> Any:
    return TypeAdapter(EstimatorConfig).validate_python({"name": name, **options})


def advantages(name: str, groups: Groups, *, seed: int = 0, step: int = 0, **options: Any) -> np.ndarray:
    config = settings_of(name, **options)
    estimator = ESTIMATORS[name]
    return estimator.advantages(groups, estimator.draw(groups, config, seed, step), config)


def scores_of(name: str, groups: Groups, p: int, g: int, weights: np.ndarray) -> float:
    """What the estimator normalises, of one rollout."""
    scalars, answers = groups.scalars[p, g], groups.rewards[p, g]
    if name == "multi_rlvr":
        return float(sum(scalars))
    if name in ("vpo", "random_weight", "goal_conditioned"):
        return references.set_score(answers, weights[p])
    return float(scalars[0])


@pytest.mark.parametrize(
    "name", ["grpo", "multi_rlvr", "vpo", "random_weight", "goal_conditioned", "max_at_k", "maxrl"]
)
@settings(max_examples=25, deadline=None)
@given(shape=shapes)
def test_estimators_equal_their_definitions(name: str, shape: tuple[int, ...]) -> None:
    groups = random_groups(*shape, fail=0.1)
    config = settings_of(name)
    weights = ESTIMATORS[name].draw(groups, config, 0, 0)
    found = ESTIMATORS[name].advantages(groups, weights, config)
    assert found.shape == groups.rewards.shape[:3]
    assert (found == found[:, :, :1]).all()
    for p in range(len(found)):
        members = [g for g in range(found.shape[1]) if not groups.failed[p, g].any()]
        others = [g for g in range(found.shape[1]) if groups.failed[p, g].any()]
        np.testing.assert_array_equal(found[p, others], 0)
        if len(members) < 2:
            np.testing.assert_array_equal(found[p], 0)
            continue
        scores = [scores_of(name, groups, p, g, weights) for g in members]
        if name == "max_at_k":
            scores = references.subset_maxima(scores, min(len(scores), max(2, len(scores) // 2)))
        mean = statistics.fmean(scores)
        expected = references.z_scores(scores, EPSILON)
        if name == "maxrl":
            expected = [(score - mean) / (mean + EPSILON) for score in scores]
        np.testing.assert_allclose(found[p, members, 0], expected, atol=1e-8)


@settings(max_examples=25, deadline=None)
@given(shape=shapes)
def test_gdpo_normalises_components_then_the_batch(shape: tuple[int, ...]) -> None:
    groups = random_groups(*shape, fail=0.1)
    found = advantages("gdpo", groups)[:, :, 0]
    sums = {}
    for p in range(len(found)):
        members = np.flatnonzero(groups.valid[p])
        for g in members:
            sums[p, g] = 0.0
        if len(members) < 2:
            continue
        for j in np.flatnonzero(groups.components[p]):
            for g, score in zip(members, references.z_scores(groups.rewards[p, members, 0, j], EPSILON), strict=True):
                sums[p, g] += score
    expected = np.zeros_like(found)
    if len(sums) > 1:
        for place, score in zip(sums, references.z_scores(list(sums.values()), EPSILON), strict=True):
            expected[place] = score
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_the_released_vpo_divides_by_the_population_deviation() -> None:
    groups = random_groups(3, 2, 8, 3, 4)
    released, ours = advantages("vpo", groups, deviation="population"), advantages("vpo", groups)
    np.testing.assert_allclose(released, ours * np.sqrt(8 / 7), rtol=1e-4)


@settings(max_examples=50, deadline=None)
@given(shape=shapes)
def test_max_at_k_equals_enumeration_of_subsets(shape: tuple[int, ...]) -> None:
    seed, _, n, *_ = shape
    values = generator(seed).integers(0, 4, n) / 3
    for k in range(1, n + 1):
        np.testing.assert_allclose(subset_maxima(values, k), references.subset_maxima(values, k), atol=1e-12)


def test_max_at_k_estimates_the_gradient_of_the_expected_maximum() -> None:
    """Exactly, by enumeration: n = 3 draws of a softmax policy over 4 outcomes, k = 2."""
    values, logits, n, k = np.array([0.0, 0.3, 0.3, 1.0]), np.array([0.5, -0.2, 0.1, -1.0]), 3, 2
    chances = np.exp(logits) / np.exp(logits).sum()
    expected, found = np.zeros(4), np.zeros(4)
    for pair in np.ndindex(4, 4):
        score = sum(np.eye(4)[i] - chances for i in pair)
        expected += chances[list(pair)].prod() * values[list(pair)].max() * score
    for draw in np.ndindex(*(4,) * n):
        gains = subset_maxima(values[list(draw)], k)
        score = sum(gain * (np.eye(4)[i] - chances) for gain, i in zip(gains, draw, strict=True))
        found += chances[list(draw)].prod() * score
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(("d", "expected"), [(2, 0.75), (3, 11 / 18), (4, 25 / 48)])
def test_one_hot_answers_score_the_harmonic_number_over_d(d: int, expected: float) -> None:
    groups = make_groups(np.eye(d)[None, None])
    weights = ESTIMATORS["vpo"].draw(groups, settings_of("vpo", weights=200_000), 0, 0)
    assert set_scores(groups.rewards, weights)[0, 0] == pytest.approx(expected, abs=3e-3)


def test_identical_answers_score_the_mean_of_the_scalarisations() -> None:
    reward = np.array([0.2, 0.9, 0.5])
    groups = make_groups(np.tile(reward, (1, 2, 4, 1)))
    weights = ESTIMATORS["vpo"].draw(groups, settings_of("vpo"), 0, 0)
    assert set_scores(groups.rewards, weights)[0, 0] == pytest.approx(float((weights[0] @ reward).mean()))


@pytest.mark.parametrize("name", ["vpo", "random_weight", "goal_conditioned"])
def test_duplicates_and_zero_rows_change_no_set_score(name: str) -> None:
    rewards = generator(1).random((2, 5, 2, 3))
    padded = np.concatenate([rewards, rewards[:, :, :1], np.zeros((2, 5, 1, 3))], axis=2)
    np.testing.assert_allclose(advantages(name, make_groups(padded))[:, :, :2], advantages(name, make_groups(rewards)))


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_padded_components_change_nothing(name: str) -> None:
    """A prompt gets the same advantages alone and next to a prompt with more components (gdpo whitens over both)."""
    rewards = generator(2).random((1, 6, 2, 3))
    wide = np.full((2, 6, 2, 5), 0.7)
    wide[0, ..., :3] = rewards[0]
    wide[1] = rewards[0, :1] @ np.ones((3, 5)) / 3  # a flat group: its own z-scores are zero
    both = make_groups(wide, components=np.arange(5)[None] < np.array([[3], [5]]))
    alone = advantages(name, make_groups(rewards))[0]
    found = advantages(name, both)[0]
    if name == "gdpo":
        found, alone = found / np.abs(found).max(), alone / np.abs(alone).max()
    np.testing.assert_allclose(found, alone, atol=1e-6)


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
@settings(max_examples=15, deadline=None)
@given(shape=shapes)
def test_the_order_of_rollouts_does_not_matter(name: str, shape: tuple[int, ...]) -> None:
    groups = random_groups(*shape, fail=0.1)
    order = generator(shape[0], "order").permutation(shape[2])
    shuffled = make_groups(
        groups.rewards[:, order],
        components=groups.components,
        scalars=groups.scalars[:, order],
        failed=groups.failed[:, order],
    )
    np.testing.assert_allclose(advantages(name, shuffled), advantages(name, groups)[:, order], atol=1e-8)


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_failed_rollouts_are_masked_whatever_stands_there(name: str) -> None:
    rewards = generator(4).random((1, 6, 2, 3))
    failed = np.zeros((1, 6, 2), bool)
    failed[0, 2, 1] = failed[0, 5] = True
    found = advantages(name, make_groups(rewards, failed=failed))
    np.testing.assert_array_equal(found[0, [2, 5]], 0)
    rest = advantages(name, make_groups(np.delete(rewards, [2, 5], axis=1)))
    np.testing.assert_allclose(np.delete(found, [2, 5], axis=1), rest, atol=1e-9)
    assert np.isfinite(advantages(name, make_groups(rewards, failed=np.ones((1, 6, 2), bool)))).all()


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_a_group_of_equal_rollouts_has_no_advantage(name: str) -> None:
    found = advantages(name, make_groups(np.full((2, 4, 2, 3), 0.5)), epsilon=1e-6)
    np.testing.assert_allclose(found, 0, atol=1e-6)


def test_a_domains_own_scalar_takes_the_place_of_the_mean() -> None:
    rewards = np.zeros((1, 2, 1, 2))
    rewards[0, 0] = 1
    groups = make_groups(rewards, scalars=[[[0.1], [0.9]]])
    np.testing.assert_allclose(advantages("grpo", groups)[0, :, 0], [-(2**-0.5), 2**-0.5], atol=1e-5)


def test_goals_are_known_before_the_rollouts_and_are_the_weights_afterwards() -> None:
    groups = random_groups(7, 3, 4, 1, 5)
    estimator, config = ESTIMATORS["goal_conditioned"], settings_of("goal_conditioned")
    assert estimator.goals is not None
    goals = estimator.goals(groups.components, groups.prompts, config, 3, 8)
    np.testing.assert_allclose(goals.sum(axis=1), 1)
    assert not goals[~groups.components].any()
    np.testing.assert_array_equal(estimator.draw(groups, config, 3, 8)[:, 0], goals)
    assert not np.allclose(estimator.goals(groups.components, groups.prompts, config, 3, 9), goals)


def test_weights_depend_on_the_prompts_place_in_the_whole_step_alone() -> None:
    rewards = generator(5).random((4, 3, 2, 3))
    whole = advantages("vpo", make_groups(rewards), seed=1, step=2)
    part = advantages("vpo", make_groups(rewards[2:], prompts=[2, 3]), seed=1, step=2)
    np.testing.assert_array_equal(part, whole[2:])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rewards": np.zeros((2, 3, 4))}, r"rewards must have the shape \(P, G, m, D\)"),
        ({"rewards": np.full((1, 2, 1, 2), 1.5)}, r"rewards must lie in \[0, 1\]"),
        ({"rewards": np.full((1, 2, 1, 2), np.nan)}, r"rewards must lie in \[0, 1\]"),
        ({"rewards": np.zeros((1, 2, 1, 2)), "components": [[False, False]]}, "components: prompt 0 has none"),
        ({"rewards": np.zeros((1, 2, 1, 2)), "failed": [[False, True]]}, r"failed must have the shape \(1, 2, 1\)"),
    ],
)
def test_wrong_input_is_explained(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_groups(**arguments)


def test_settings_of_another_estimator_are_errors() -> None:
    with pytest.raises(ValidationError, match="unknown key 'weights'"):
        settings_of("grpo", weights=100)
    with pytest.raises(ValidationError, match="vpoo"):
        settings_of("vpoo")
