"""Scrambled Sobol points and Dirichlet weights from them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evolve.randomness import generator
from trainer.estimators.simplex import beta_strata, sobol_dirichlet
from trainer.estimators.sobol import scrambled_strata
from trainer.estimators.vpo import set_scores


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(0, 9))
def test_every_coordinate_holds_every_stratum_once(seed: int, dimensions: int, bits: int) -> None:
    strata = scrambled_strata(generator(seed), dimensions, 2**bits)
    assert strata.shape == (dimensions, 2**bits)
    assert (np.sort(strata, axis=1) == np.arange(2**bits)).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 8))
def test_the_first_two_coordinates_fill_every_box(seed: int, bits: int) -> None:
    """A (0, k, 2)-net stays one under scrambling: each box of 2**-a by 2**-(8 - a) holds one of 256 points."""
    first, second = scrambled_strata(generator(seed), 2, 256).astype(int)
    boxes = (first >> (8 - bits)) * 2 ** (8 - bits) + (second >> bits)
    assert len(set(boxes)) == 256


def test_scramblings_make_every_point_uniform_and_independent_across_coordinates() -> None:
    points = np.stack([scrambled_strata(generator(seed, "uniform"), 3, 64)[:, 5] for seed in range(4000)])
    counts = np.stack([np.bincount(points[:, j] // 8, minlength=8) for j in range(3)])
    assert (abs(counts - 500) < 5 * np.sqrt(500)).all()
    assert np.abs(np.corrcoef(points.T)[np.triu_indices(3, 1)]).max() < 0.06


def test_blocks_of_points_are_nets_too() -> None:
    strata = scrambled_strata(generator(0), 5, 512)
    for block in np.split(strata, 8, axis=1):
        assert (np.sort(block // 8, axis=1) == np.arange(64)).all()


def test_the_number_of_points_is_a_power_of_two() -> None:
    with pytest.raises(ValueError, match="must be a power of two up to 2\\*\\*30, not 100"):
        scrambled_strata(generator(0), 2, 100)


@pytest.mark.parametrize(("a", "b"), [(0.02, 0.05), (0.1, 0.1), (0.2, 3.0), (1.0, 1.0), (2.5, 0.5), (40.0, 7.0)])
def test_beta_strata_have_the_moments_of_beta(a: float, b: float) -> None:
    means = beta_strata(a, b, 4096)
    assert (np.diff(means) > -1e-9).all()
    assert means.mean() == pytest.approx(a / (a + b), rel=1e-12)
    assert (means**2).mean() == pytest.approx(a * (a + 1) / ((a + b) * (a + b + 1)), rel=1e-4)


@pytest.mark.parametrize(("a", "b"), [(0.02, 3.0), (0.5, 0.2), (1.0, 1.0)])
def test_fewer_beta_strata_are_means_of_more(a: float, b: float) -> None:
    np.testing.assert_allclose(beta_strata(a, b, 64), beta_strata(a, b, 8192).reshape(64, -1).mean(axis=1), atol=3e-5)


def test_beta_strata_of_a_mirrored_power() -> None:
    """Beta(1, 2) has the distribution function 1 - (1 - x)**2: the means of its strata are known."""
    left = (1 - np.arange(4097) / 4096) ** 0.5  # of 1 - x, at the edges
    masses = left**2 - 2 / 3 * left**3  # integral of x times the density 2 (1 - x), up to a constant
    np.testing.assert_allclose(beta_strata(1.0, 2.0, 4096), -np.diff(masses) * 4096, atol=1e-6)


@pytest.mark.parametrize("a", [300.0, 3000.0])
def test_beta_strata_of_narrow_densities(a: float) -> None:
    np.testing.assert_allclose(
        beta_strata(a, a, 256), beta_strata(a, a, 2**14).reshape(256, -1).mean(axis=1), atol=3e-6
    )


@pytest.mark.parametrize("alpha", [1e-4, 1e-12])
def test_splits_of_tiny_alphas_are_all_or_nothing(alpha: float) -> None:
    weights = sobol_dirichlet(generator("tiny"), np.full(3, alpha), 64)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert np.median(weights.max(axis=1)) > 0.999


@pytest.mark.parametrize(("a", "b"), [(0.2, 0.2), (1.0, 2.0), (3.0, 5.0)])
def test_beta_strata_equal_those_of_a_large_sample(a: float, b: float) -> None:
    sample = np.sort(generator("beta").beta(a, b, 800_000)).reshape(8, -1).mean(axis=1)
    np.testing.assert_allclose(beta_strata(a, b, 8), sample, atol=2e-3)


def test_beta_strata_of_the_uniform_distribution_are_the_midpoints() -> None:
    np.testing.assert_allclose(beta_strata(1.0, 1.0, 16), (np.arange(16) + 0.5) / 16, atol=1e-5)


@pytest.mark.parametrize("alphas", [[1.0] * 4, [0.1] * 7, [0.3, 2.0, 0.05], [5.0]])
def test_weights_have_the_moments_of_dirichlet(alphas: list[float]) -> None:
    alpha = np.array(alphas)
    draws = np.concatenate([sobol_dirichlet(generator(i), alpha, 1024) for i in range(16)])
    total = alpha.sum()
    mean = alpha / total
    np.testing.assert_allclose(draws.sum(axis=1), 1)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=2e-3)
    covariance = (np.diag(mean) - np.outer(mean, mean)) / (total + 1)
    np.testing.assert_allclose(draws.T @ draws / len(draws) - np.outer(mean, mean), covariance, atol=4e-3)


def test_the_mean_weight_is_unbiased_for_few_points_too() -> None:
    """Each weight is its conditional mean given the strata, so even 4 points give 1 / d on average."""
    draws = np.stack([sobol_dirichlet(generator(i, "few"), np.full(3, 0.5), 4).mean(axis=0) for i in range(4000)])
    np.testing.assert_allclose(draws.mean(axis=0), 1 / 3, atol=5 * draws.std() / np.sqrt(4000))


@pytest.mark.parametrize("d", [2, 3, 4])
def test_one_hot_answers_score_the_harmonic_number_over_d(d: int) -> None:
    weights = sobol_dirichlet(generator(0), np.ones(d), 4096)[None]
    expected = sum(1 / j for j in range(1, d + 1)) / d
    assert set_scores(np.eye(d)[None, None], weights)[0, 0] == pytest.approx(expected, abs=2e-4)


def test_the_same_key_gives_the_same_weights() -> None:
    first, second = (sobol_dirichlet(generator(1, 2, 3), np.full(5, 0.6), 256) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not np.allclose(first, sobol_dirichlet(generator(1, 2, 4), np.full(5, 0.6), 256))
