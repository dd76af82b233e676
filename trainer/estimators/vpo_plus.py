"""vpo_plus: VPO with its measured weaknesses mended, one pure function each (docs/estimators.md has the figures).

For a group's judged rollouts, with w ~ Dirichlet(alpha, ..., alpha) and alpha = c / d:
R(S) = mean over K weights of the best w @ r of the answers in S;
credit of answer i = (1 - g) (R(all answers) - b R(answers before i)) + g (its task scalar), g from the gate;
A = (credit - mean over the group of the credit at place i) / max(deviation, floor).

Departures from VPO (arXiv 2605.22817), each left out by a setting:
1. Weights are scrambled Sobol points (``sobol``); :mod:`trainer.estimators.simplex`.
2. The deviation has a floor: the estimated integration error over ``noise``; :mod:`trainer.estimators.noise`.
3. alpha = c / d (``alpha`` fixes it instead). c is derived: with c = m, the total weights of m blocks of d / m
   components are uniform on their simplex for every d, so a chain of m specialists always scores H_m / m (.61 for
   three) instead of fading with d. c = 3 is alpha = 1 at d = 3.
4. Components that no answer of the group tells apart are one to the integration (``merge``);
   :mod:`trainer.estimators.merge`.
5. Where components are collinear a gate g goes over to the task scalar (``gate``); :mod:`trainer.estimators.gate`.
6. Each answer has its own credit (``baseline``: b); :mod:`trainer.estimators.credit`. The deviation is pooled over
   places: where little is at stake advantages are small, and their mean square is one, as for other estimators.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evolve.randomness import generator
from trainer.estimators.config import VpoPlusConfig
from trainer.estimators.credit import prefix_credit, prefix_maxima
from trainer.estimators.gate import closedness, mean_correlation
from trainer.estimators.groups import Floats, Groups
from trainer.estimators.merge import blocks_of
from trainer.estimators.noise import BLOCKS, block_means, integration_error, pooled_deviation
from trainer.estimators.simplex import sobol_dirichlet

_ENOUGH = ((6, 256), (8, 512), (10, 1024), (12, 2048))
"""Up to so many merged components, so many Sobol weights keep the mean error of advantages below .01 (measured)."""
_MOST = 4096
"""For more components: the error is .006 at 16 and .012 at 32."""


def vpo_plus_weights(groups: Groups, config: VpoPlusConfig, seed: int, step: int) -> Floats:
    """Weights (P, K, D) keyed by (seed, step, prompt); merged components get equal parts of their block's weight.

    K is the most that a prompt needs; a prompt that needs fewer has zero rows after its own.
    """
    P, _, m, D = groups.rewards.shape
    blocks = [_blocks(groups, p, config) for p in range(P)]
    counts = [config.weights or _enough(int(row.max()) + 1) for row in blocks]
    weights = np.zeros((P, D, max(counts)))
    for p, prompt in enumerate(groups.prompts):
        rng = generator(seed, step, int(prompt), "weights")
        weights[p, groups.components[p], : counts[p]] = _group_weights(rng, blocks[p], m, counts[p], config)
    return weights.transpose(0, 2, 1)


def _enough(dimensions: int) -> int:
    return next((count for limit, count in _ENOUGH if dimensions <= limit), _MOST)


def _blocks(groups: Groups, p: int, config: VpoPlusConfig) -> NDArray[np.int64]:
    """The block of each component that the prompt has, shape (d,)."""
    answers = groups.rewards[p, groups.valid[p]][..., groups.components[p]]
    d = answers.shape[-1]
    return blocks_of(answers.reshape(-1, d)) if config.merge else np.arange(d)


def _group_weights(
    rng: np.random.Generator, blocks: NDArray[np.int64], m: int, count: int, config: VpoPlusConfig
) -> Floats:
    """Weights (d, K) for one prompt, equal within each block."""
    concentration = m if config.concentration is None else config.concentration
    alpha = concentration / len(blocks) if config.alpha is None else config.alpha
    sizes = np.bincount(blocks)
    merged = sobol_dirichlet(rng, alpha * sizes, count) if config.sobol else rng.dirichlet(alpha * sizes, size=count)
    return (merged.T / sizes[:, None])[blocks]


def vpo_plus(groups: Groups, weights: Floats, config: VpoPlusConfig) -> Floats:
    """Advantages (P, G, m), zero for rollouts that were not judged."""
    advantages = np.zeros(groups.scalars.shape)
    for p, valid in enumerate(groups.valid):
        if valid.sum() >= 2:
            answers, scalars = groups.rewards[p, valid], groups.scalars[p, valid].T
            closed = closedness(mean_correlation(answers.reshape(-1, answers.shape[2])), config.gate)
            own = weights[p, : np.count_nonzero(weights[p].sum(axis=1))]
            advantages[p, valid] = group_advantages(scalarise(answers, own), scalars, closed, config).T
    return advantages


def scalarise(answers: Floats, weights: Floats) -> Floats:
    """``w @ r`` of one group's answers (n, m, d) under weights (K, d), shape (m, n, K)."""
    n, m, d = answers.shape
    return (answers.transpose(1, 0, 2).reshape(m * n, d) @ weights.T).reshape(m, n, -1)


def group_advantages(scalarised: Floats, scalars: Floats, closed: float, config: VpoPlusConfig) -> Floats:
    """Advantages (m, n) of one group from scalarised rewards (m, n, K), task scalars (m, n) and the gate's state."""
    prefixes = prefix_maxima(scalarised)
    own = scalars if config.baseline else np.broadcast_to(scalars.mean(axis=0), scalars.shape)
    credits = (1 - closed) * prefix_credit(prefixes.mean(axis=-1), config.baseline) + closed * own
    differences = credits - credits.mean(axis=1, keepdims=True)
    scale = pooled_deviation(differences, config.deviation)
    if config.noise and scalarised.shape[-1] >= 2 * BLOCKS:
        blocks = prefix_credit(block_means(prefixes), config.baseline)
        scale = max(scale, (1 - closed) * integration_error(blocks, config.deviation) / config.noise)
    scale += config.epsilon
    return differences / scale if scale else differences
