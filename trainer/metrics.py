"""Figures of one policy-gradient step: what the rollouts earned, how they differ, and what the estimator saw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evolve.metrics import reward_diversity
from evolve.randomness import generator
from trainer.estimators.gate import component_correlation
from trainer.estimators.vpo import set_scores
from trainer.rollout.base import Rollouts
from trainer.scoring import Scores

_FLAT = 1e-3
_WEIGHTS = 64


def step_metrics(scores: Scores, advantages: np.ndarray, seed: int) -> dict[str, float]:
    """Figures over P groups; advantages (P, G, m).

    set_score: E_w[best@m], the best of a rollout's answers under w ~ Dirichlet(1), for every estimator alike.
    task_scalar: mean of the first answers. best_of_group, solved_share: over all answers of a group.
    diversity: mean L1 distance of a group's reward vectors. component_correlation: between the components that vary.
    flat_groups: share of groups without any advantage. unjudged: share of answers whose judge failed.
    answers_per_rollout, chain_completeness: distinct answers, and their share of the m asked for.
    """
    found = np.array([len(answers) for answers in scores.answers])
    m = scores.rewards.shape[2]
    prompts = range(len(scores.rewards))
    return {
        "set_score": _expected_best(scores, seed),
        "task_scalar": float(scores.scalars[:, :, 0].mean()),
        "best_of_group": float(scores.scalars.max(axis=(1, 2)).mean()),
        "solved_share": float(scores.solved.any(axis=(1, 2)).mean()),
        "diversity": float(np.mean([reward_diversity(_given(scores, p)) for p in prompts])),
        "component_correlation": float(np.mean([component_correlation(_given(scores, p)) for p in prompts])),
        "flat_groups": float((np.abs(advantages).max(axis=(1, 2)) < _FLAT).mean()),
        "mean_abs_advantage": float(np.abs(advantages).mean()),
        "unjudged": float((~scores.valid).mean()),
        "answers_per_rollout": float(found.mean()),
        "chain_completeness": float(found.mean() / m),
    }


def rollout_metrics(parts: Sequence[Rollouts]) -> dict[str, float]:
    """Lengths in tokens and the share of generations that wrote their end mark, over all processes' rollouts."""
    lengths = np.concatenate([part.mask.sum(dim=1).cpu().numpy() for part in parts])
    finished = np.concatenate([np.array(part.finished, dtype=float) for part in parts])
    return {"length": float(lengths.mean()), "length_max": float(lengths.max()), "finished": float(finished.mean())}


def _given(scores: Scores, p: int) -> np.ndarray:
    """Reward vectors of the answers that a group gave and that were judged, shape (n, d)."""
    group = scores.rewards.shape[1]
    places = [
        (g, answer.index)
        for g in range(group)
        for answer in scores.answers[p * group + g]
        if scores.valid[p, g, answer.index]
    ]
    rows = [scores.rewards[p, g, place] for g, place in places]
    return np.array(rows).reshape(len(rows), -1)[:, scores.components[p]] if rows else np.zeros((0, 1))


def _expected_best(scores: Scores, seed: int) -> float:
    means = []
    for rewards, components in zip(scores.rewards, scores.components, strict=True):
        table = rewards[..., components]
        weights = generator(seed, "expected best").dirichlet(np.ones(table.shape[-1]), size=_WEIGHTS)
        means.append(set_scores(table[None], weights[None]).mean())
    return float(np.mean(means))
