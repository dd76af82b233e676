"""Each known weakness of VPO (DESIGN.md section 6) that an estimator can have: there in the published form, gone here.

The figures are those of docs/estimators.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evolve.randomness import generator
from tests.trainer.estimators.published import PublishedVpo
from trainer.estimators import ESTIMATORS
from trainer.estimators.config import VpoConfig, VpoPlusConfig
from trainer.estimators.gate import mean_correlation
from trainer.estimators.groups import Groups, make_groups
from trainer.estimators.normalise import z_scores
from trainer.estimators.vpo import set_scores
from trainer.estimators.vpo_plus import vpo_plus, vpo_plus_weights


def ours(rewards: np.ndarray, *, seed: int = 0, step: int = 0, **options: Any) -> np.ndarray:
    """Advantages (G, m) of one group's rewards (G, m, d)."""
    groups, config = make_groups(rewards[None]), VpoPlusConfig(**options)
    return vpo_plus(groups, vpo_plus_weights(groups, config, seed, step), config)[0]


def halves(seed: int, rollouts: int = 8, tests: int = 16) -> np.ndarray:
    """Rollouts of one answer that passes another half of the tests each: tied in expectation. Shape (G, 1, d)."""
    return (
        np.stack([generator(seed, "half", g).permutation(np.arange(tests) % 2) for g in range(rollouts)])[:, None] * 1.0
    )


@pytest.mark.parametrize("weights", [100, 1600, 12_800])
def test_published_noise_becomes_full_advantages_whatever_the_number_of_weights(weights: int) -> None:
    sizes = [np.abs(PublishedVpo(seed, weights=weights).advantages(halves(seed))).mean() for seed in range(20)]
    assert np.mean(sizes) == pytest.approx(0.83, abs=0.05)


def test_noise_stays_noise() -> None:
    sizes = [np.abs(ours(halves(seed), seed=seed)).mean() for seed in range(20)]
    assert max(sizes) < 0.1
    unfloored = [np.abs(ours(halves(seed), seed=seed, noise=0)).mean() for seed in range(20)]
    assert np.mean(unfloored) > 0.7, "the floor, not luck, keeps it small"


def test_noise_stays_noise_for_sets_that_are_each_others_mirror_images() -> None:
    chain = (generator(0).random((3, 16)) < 0.4) * 1.0
    rewards = np.stack([chain[:, generator(g, "mirror").permutation(16)] for g in range(8)])
    assert np.abs(PublishedVpo(0).advantages(rewards)).mean() > 0.7
    assert np.abs(ours(rewards)).mean() < 0.1


def test_the_floor_leaves_real_differences_alone() -> None:
    rewards = (generator(1).random((8, 3, 16)) < generator(2).random((8, 1, 1))) * 1.0
    np.testing.assert_allclose(ours(rewards), ours(rewards, noise=0), rtol=1e-9)


def specialists(d: int) -> np.ndarray:
    """Three answers, each right in another third of the components."""
    return np.repeat(np.eye(3), d // 3, axis=1)


def test_published_specialists_fade_with_the_number_of_components() -> None:
    scores = {d: PublishedVpo(0, weights=20_000).scores(specialists(d)[None])[0] for d in (3, 30)}
    assert scores[3] == pytest.approx(0.61, abs=0.01)
    assert scores[30] == pytest.approx(0.42, abs=0.01)
    mediocre = np.full((3, 30), 0.5)
    advantages = PublishedVpo(0).advantages(np.stack([specialists(30), mediocre]))
    assert advantages[0] < advantages[1]


@pytest.mark.parametrize("d", [3, 6, 30, 99])
@pytest.mark.parametrize("merge", [True, False])
def test_specialists_keep_their_worth(d: int, merge: bool) -> None:
    groups = make_groups(specialists(d)[None, None])
    weights = vpo_plus_weights(groups, VpoPlusConfig(merge=merge), 0, 0)
    assert set_scores(groups.rewards, weights)[0, 0] == pytest.approx(11 / 18, abs=0.02)
    advantages = ours(np.stack([specialists(d), np.full((3, d), 0.5)]), gate=None, baseline=0)
    assert (advantages[0] > advantages[1]).all()


def test_published_tokens_of_useless_answers_are_praised() -> None:
    """Chain 0: a perfect answer, then garbage. Chain 1: garbage alone. Every answer of chain 0 is worth 1 there."""
    rewards = np.zeros((2, 3, 4))
    rewards[0, 0] = 1
    assert PublishedVpo(0).advantages(rewards)[0] == pytest.approx(1, abs=1e-4)
    gains = ours(rewards, baseline=1)
    assert gains[0, 0] > 1
    np.testing.assert_allclose(gains[:, 1:], 0, atol=1e-9)
    advantages = ours(rewards)
    np.testing.assert_allclose(advantages[:, 1:], 0.35 * advantages[:, :1].repeat(2, axis=1))


def collinear(seed: int) -> np.ndarray:
    """Eight rollouts of three answers whose eight components rise and fall together, up to a little noise."""
    quality = generator(seed, "quality").random((8, 3, 1))
    return np.clip(0.1 + 0.8 * quality + 0.03 * generator(seed, "noise").normal(size=(8, 3, 8)), 0, 1)


def test_published_set_scores_do_not_see_the_other_answers_of_collinear_chains() -> None:
    """All but the best answer of a chain may be anything: published advantages are the same, ours are not."""
    rewards = collinear(0)
    worse = rewards.copy()
    best = rewards.mean(axis=-1).argmax(axis=1)
    for g in range(8):
        for i in range(3):
            worse[g, i] *= 1 if i == best[g] else 0.01 * (g % 2) + 0.05
    a, b = PublishedVpo(0).advantages(rewards), PublishedVpo(0).advantages(worse)
    np.testing.assert_allclose(a, b, atol=0.05)
    assert np.abs(ours(rewards) - ours(worse)).mean() > 0.3


def test_collinear_answers_are_credited_by_their_task_scalars_as_in_grpo() -> None:
    for seed in range(20):
        rewards = collinear(seed)
        assert mean_correlation(rewards.reshape(-1, 8)) > 0.95
        scalars = rewards.mean(axis=-1)
        advantages = ours(rewards, seed=seed)
        differences = scalars - scalars.mean(axis=0)
        np.testing.assert_allclose(advantages, differences / np.sqrt((differences**2).sum() / 21), atol=1e-4)
        published = np.repeat(PublishedVpo(seed).advantages(rewards)[:, None], 3, axis=1)
        agreement = [np.corrcoef(found.ravel(), differences.ravel())[0, 1] for found in (published, advantages)]
        assert agreement[0] < 0.8
        assert agreement[1] > 0.999


def test_the_gate_is_open_where_answers_specialise() -> None:
    rewards = np.eye(4)[generator(0).integers(0, 4, (8, 3))]
    np.testing.assert_array_equal(ours(rewards), ours(rewards, gate=None))


def test_published_population_deviation_makes_larger_steps() -> None:
    rewards = generator(0).random((8, 3, 4))
    published = PublishedVpo(0).advantages(rewards)
    grpo = z_scores(rewards.mean(axis=-1)[None, :, 0], np.ones((1, 8), bool), 1e-6)[0]
    assert np.sqrt((published**2).sum() / (grpo**2).sum()) == pytest.approx(1.069, abs=1e-3)
    plus = ours(rewards, baseline=0)[:, 0]
    assert (plus**2).sum() == pytest.approx((grpo**2).sum(), rel=1e-3)
    assert (ours(rewards) ** 2).sum() / 3 == pytest.approx((grpo**2).sum(), rel=1e-3)


def test_published_weights_change_when_training_is_resumed() -> None:
    steps = generator(0).random((4, 8, 3, 5))
    whole, resumed = PublishedVpo(7), PublishedVpo(7)
    expected = [whole.advantages(step) for step in steps]
    assert np.abs(resumed.advantages(steps[2]) - expected[2]).max() > 0.01


@pytest.mark.parametrize("name", ["vpo", "vpo_plus"])
def test_resumed_training_draws_the_same_weights(name: str) -> None:
    estimator = ESTIMATORS[name]
    config = VpoPlusConfig() if name == "vpo_plus" else VpoConfig()
    steps = [make_groups(generator(step).random((3, 4, 2, 5))) for step in range(4)]
    whole = [_advantages(estimator, groups, config, step) for step, groups in enumerate(steps)]
    resumed = [_advantages(estimator, steps[step], config, step) for step in (2, 3)]
    np.testing.assert_array_equal(resumed, whole[2:])
    other = _advantages(estimator, steps[2], config, 9)
    assert not np.array_equal(other, whole[2])


def _advantages(estimator: Any, groups: Groups, config: Any, step: int) -> np.ndarray:
    return estimator.advantages(groups, estimator.draw(groups, config, 0, step), config)
