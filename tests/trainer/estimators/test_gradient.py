"""The expected policy gradient of each kind of credit, by enumeration of everything that can happen.

A policy writes four binary tokens, each with a free logit per text before it; two tokens are one answer, and four answers
have fixed reward vectors. With sums over all 16 texts (or all 256 pairs of texts, for groups of two) there is no
sampling error: credit that is valid gives the gradient of the expected set score to rounding.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from evolve.randomness import generator
from trainer.estimators.config import VpoPlusConfig
from trainer.estimators.credit import prefix_credit, prefix_maxima
from trainer.estimators.groups import make_groups
from trainer.estimators.simplex import sobol_dirichlet
from trainer.estimators.vpo import set_scores
from trainer.estimators.vpo_plus import scalarise, vpo_plus

LENGTH, M = 4, 2
TEXTS = list(itertools.product((0, 1), repeat=LENGTH))
REWARDS = generator("gradient", "rewards").random((4, 3)) * np.array([1.0, 0.7, 0.4])
WEIGHTS = sobol_dirichlet(generator("gradient", "weights"), np.full(3, 0.7), 64)
LOGITS = generator("gradient", "logits").normal(size=2**LENGTH)

SHARES = [0.0, 0.65, 1.0]


def context(text: tuple[int, ...], t: int) -> int:
    """A number for the text before token t; also the place of its logit."""
    return 2**t - 1 + int("0" + "".join(map(str, text[:t])), 2)


def answers(text: tuple[int, ...]) -> np.ndarray:
    """Reward vectors of the two answers; one that repeats the first is a zero row."""
    first, second = 2 * text[0] + text[1], 2 * text[2] + text[3]
    return np.stack([REWARDS[first], REWARDS[second] * (first != second)])


ANSWERS = np.stack([answers(text) for text in TEXTS])
PREFIXES = prefix_maxima(scalarise(ANSWERS, WEIGHTS)).mean(axis=-1)


def chances_and_scores() -> tuple[np.ndarray, np.ndarray]:
    """Chance of each text (16,) and the score function of each token, shape (16, 4, logits)."""
    ones = 1 / (1 + np.exp(-LOGITS))
    chances, scores = np.ones(len(TEXTS)), np.zeros((len(TEXTS), LENGTH, len(LOGITS)))
    for i, text in enumerate(TEXTS):
        for t, token in enumerate(text):
            place = context(text, t)
            chances[i] *= ones[place] if token else 1 - ones[place]
            scores[i, t, place] = token - ones[place]
    return chances, scores


CHANCES, SCORES = chances_and_scores()
BY_ANSWER = SCORES.reshape(len(TEXTS), M, 2, -1).sum(axis=2)
"""Score functions summed over the tokens of each answer, shape (16, m, logits)."""


def objective_gradient() -> np.ndarray:
    """Gradient of the expected set score, by automatic differentiation."""
    logits = torch.tensor(LOGITS, requires_grad=True)
    worth = torch.tensor(set_scores(ANSWERS[None], WEIGHTS[None])[0])
    total = torch.zeros((), dtype=torch.float64)
    for i, text in enumerate(TEXTS):
        signs = torch.tensor([1.0 if token else -1.0 for token in text], dtype=torch.float64)
        logs = torch.nn.functional.logsigmoid(signs * logits[[context(text, t) for t in range(LENGTH)]])
        total = total + worth[i] * logs.sum().exp()
    total.backward()
    return logits.grad.numpy()


def leave_one_out() -> np.ndarray:
    """R(S) - R(S without i), shape (m, 16): what vpo_plus does not do."""
    whole = PREFIXES[-1]
    without = [set_scores(np.delete(ANSWERS, i, axis=1)[None], WEIGHTS[None])[0] for i in range(M)]
    return np.stack([whole - other for other in without])


def gradients(credits: np.ndarray) -> np.ndarray:
    """What each text contributes: credit (m, 16) times the score function of each answer; shape (16, logits)."""
    return np.einsum("mi,iml->il", credits, BY_ANSWER)


@pytest.mark.parametrize("share", SHARES)
def test_expected_gradient_is_that_of_the_set_objective(share: float) -> None:
    found = CHANCES @ gradients(prefix_credit(PREFIXES, share))
    np.testing.assert_allclose(found, objective_gradient(), atol=1e-15)


def test_leave_one_out_credit_is_biased() -> None:
    found, expected = CHANCES @ gradients(leave_one_out()), objective_gradient()
    assert np.abs(found - expected).max() > 0.1 * np.abs(expected).max()


def pairs(credits: np.ndarray) -> tuple[np.ndarray, float]:
    """Mean and total variance of the gradient of groups of two with centred credit (m, 16), over all 256 pairs."""
    halves = (credits[:, :, None] - credits[:, None, :]) / 2
    one = np.einsum("mab,aml->abl", halves, BY_ANSWER)
    gradient = (one + one.transpose(1, 0, 2)) / 2
    chances = CHANCES[:, None] * CHANCES[None]
    mean = np.einsum("ab,abl->l", chances, gradient)
    return mean, float((chances * (gradient**2).sum(axis=2)).sum() - mean @ mean)


@pytest.mark.parametrize("share", SHARES)
def test_centring_in_the_group_scales_the_gradient_and_nothing_else(share: float) -> None:
    """By (G - 1) / G, since each rollout is part of its own mean."""
    np.testing.assert_allclose(pairs(prefix_credit(PREFIXES, share))[0], objective_gradient() / 2, atol=1e-15)


def test_the_baseline_takes_out_variance() -> None:
    """Geometric mean over tables of rewards where an answer passes each test by a coin that differs by answer."""
    ratios = []
    for seed in range(20):
        rng = generator(seed, "table")
        table = (rng.random((4, 3)) < rng.random((4, 1))) * 1.0
        sets = np.stack([[table[2 * a + b], table[2 * c + d] * ((a, b) != (c, d))] for a, b, c, d in TEXTS])
        prefixes = prefix_maxima(scalarise(sets, WEIGHTS)).mean(axis=-1)
        variances = [pairs(prefix_credit(prefixes, share))[1] for share in SHARES]
        ratios.append(np.log(np.array(variances[1:]) / variances[0]))
    fitted, whole = np.exp(np.mean(ratios, axis=0))
    assert fitted < whole
    assert fitted < 0.9, (fitted, whole)


def test_a_token_belongs_to_an_answer_by_the_text_before_it() -> None:
    """What makes the baseline valid: a token's score function has mean zero given the text before it."""
    for t in range(LENGTH):
        for before in itertools.product((0, 1), repeat=t):
            rows = [i for i, text in enumerate(TEXTS) if text[:t] == before]
            np.testing.assert_allclose(CHANCES[rows] @ SCORES[rows, t], 0, atol=1e-15)


def test_advantages_are_the_centred_credit_over_one_scale() -> None:
    groups = make_groups(ANSWERS[None])
    found = vpo_plus(groups, WEIGHTS[None], VpoPlusConfig(gate=None, noise=0, baseline=1))[0]
    differences = (credit := prefix_credit(PREFIXES, 1.0)) - credit.mean(axis=1, keepdims=True)
    scale = found[0, 0] / differences[0, 0]
    np.testing.assert_allclose(found, differences.T * scale, atol=1e-12)
