"""Held-out evaluation: what a model finds by sampling alone, from scratch."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evolve.metrics import chain_best_at_k, chain_pass_at_k, expected_best_at_k, mean_interval, reward_diversity
from evolve.randomness import generator
from trainer.config import EvalConfig
from trainer.domains.base import Domain, Prompt
from trainer.estimators.vpo import set_scores
from trainer.rollout.base import Key, Sampler
from trainer.scoring import Scores, collect_scores, judge_texts

_BATCH = 16


@dataclass(frozen=True, slots=True)
class Judgement:
    """A held-out problem's answers. rewards: (chains, m, d); scalars, given: (chains, m). names: of the components."""

    rewards: np.ndarray
    scalars: np.ndarray
    given: np.ndarray
    names: tuple[str, ...]
    tokens: int


def held_out_answers(
    sampler: Sampler,
    domain: Domain,
    m: int,
    config: EvalConfig,
    runner: asyncio.Runner,
    *,
    goals: bool = False,
    share: range | None = None,
) -> list[Judgement]:
    """Ask ``ceil(answers / m)`` chains for each held-out problem (of ``share``) and judge them.

    goals: every chain's prompt states weights of its own, drawn from Dirichlet(1), as ``goal_conditioned`` trained.
    An answer that the judge failed on counts as worth nothing, as it would in use.
    """
    chains = math.ceil(config.answers / m)
    indices = list(range(config.problems) if share is None else share)
    found = []
    for start in range(0, len(indices), _BATCH):
        batch = indices[start : start + _BATCH]
        problems = [domain.problem(generator(config.seed, "held-out", i), heldout=True) for i in batch]
        keys: list[list[Key]] = [[(config.seed, "evaluate", i, g) for g in range(chains)] for i in batch]
        asked = runner.run(_ask(domain, problems, keys, m, goals=goals))
        if goals:  # a prompt of its own for every chain
            keys = [[key] for row in keys for key in row]
        rollouts = sampler.sample(asked, keys, max_tokens=domain.prompt_format(m).max_tokens)
        judged = runner.run(judge_texts(domain, problems, rollouts.texts, m))
        scores = collect_scores(domain, problems, rollouts.texts, judged, m)
        lengths = rollouts.mask.sum(dim=1).reshape(len(batch), chains).sum(dim=1).tolist()
        found += [_judgement(domain, problems[p], scores, p, lengths[p]) for p in range(len(batch))]
    return found


async def _ask(
    domain: Domain, problems: Sequence[Any], keys: Sequence[Sequence[Key]], m: int, *, goals: bool
) -> list[Prompt]:
    if not goals:
        return list(await asyncio.gather(*(domain.ask(problem, m) for problem in problems)))
    asked = []
    for problem, row in zip(problems, keys, strict=True):
        ones = np.ones(len(domain.components(problem)))
        asked += [domain.ask(problem, m, goal=generator(*key, "goal").dirichlet(ones)) for key in row]
    return list(await asyncio.gather(*asked))


def _judgement(domain: Domain, problem: Any, scores: Scores, p: int, tokens: int) -> Judgement:
    chains, m = scores.scalars.shape[1:]
    given = np.zeros((chains, m), dtype=bool)
    for g in range(chains):
        given[g, [answer.index for answer in scores.answers[p * chains + g]]] = True
    rewards = scores.rewards[p][..., scores.components[p]]
    return Judgement(rewards, scores.scalars[p], given, domain.components(problem), tokens)


def problem_figures(found: Judgement, ks: Sequence[int]) -> dict[str, float]:
    """pass@k, best@k and E_w[best@k] of one problem, and the diversity of its first ``max(ks)`` answers.

    Answers of a chain depend on each other, so whole chains are resampled and k takes a prefix of the last one;
    best@1 is the mean of the first answers. Diversity: mean pairwise L1 distance of the reward vectors.
    """
    solved = found.scalars >= 1 - 1e-9
    figures = {}
    for k in ks:
        figures[f"pass@{k}"] = chain_pass_at_k(solved, k)
        figures[f"best@{k}"] = chain_best_at_k(found.scalars, k)
        figures[f"E_w[best@{k}]"] = expected_best_at_k(found.rewards, k, weights=64)
    figures["diversity"] = reward_diversity(found.rewards.reshape(-1, found.rewards.shape[-1])[: max(ks)])
    return figures


def evaluate(
    sampler: Sampler,
    domain: Domain,
    m: int,
    config: EvalConfig,
    runner: asyncio.Runner,
    *,
    goals: bool = False,
    share: range | None = None,
) -> list[dict[str, float]]:
    """:func:`problem_figures` at k = 1 and ``config.answers`` of each held-out problem (of ``share``)."""
    found = held_out_answers(sampler, domain, m, config, runner, goals=goals, share=share)
    return [problem_figures(one, (1, config.answers)) for one in found]


def means(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean over problems of each figure."""
    return {name: round(float(np.mean([row[name] for row in rows])), 4) for name in rows[0]}


def intervals(rows: Sequence[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Mean and 95 % bootstrap interval over problems of each figure."""
    return {name: asdict(mean_interval([row[name] for row in rows])) for name in rows[0]}


def positions(found: Sequence[Judgement]) -> list[dict[str, Any]]:
    """How the answers specialise by their place in the chain: one row a place.

    given: share of chains with a distinct answer there. scalar: its mean task scalar. gain: what it adds to the
    E_w[best] of the answers before it. distance: mean L1 distance between the mean reward vector of this place and
    those of the others, per problem; 0 where all places do the same. components: mean reward of each, where all
    problems have the same ones.
    """
    m = found[0].scalars.shape[1]
    named = found[0].names if all(one.names == found[0].names for one in found) else None
    rows = []
    for place in range(m):
        row: dict[str, Any] = {
            "place": place + 1,
            "given": float(np.mean([one.given[:, place].mean() for one in found])),
            "scalar": float(np.mean([one.scalars[:, place].mean() for one in found])),
            "gain": float(np.mean([_prefix_score(one, place + 1) - _prefix_score(one, place) for one in found])),
            "distance": float(np.mean([_distance(one.rewards.mean(axis=0), place) for one in found])),
        }
        if named is not None:
            values = np.mean([one.rewards[:, place].mean(axis=0) for one in found], axis=0)
            row["components"] = dict(zip(named, values.tolist(), strict=True))
        rows.append(row)
    return rows


def _prefix_score(found: Judgement, count: int) -> float:
    """E_w of the best of the first ``count`` answers, mean over chains; w ~ Dirichlet(1)."""
    if not count:
        return 0.0
    weights = generator(0, "positions").dirichlet(np.ones(found.rewards.shape[-1]), size=64)
    return float(set_scores(found.rewards[None, :, :count], weights[None]).mean())


def _distance(vectors: np.ndarray, place: int) -> float:
    """Mean L1 distance of one row of (m, d) from the others."""
    others = np.delete(vectors, place, axis=0)
    return float(np.abs(others - vectors[place]).sum(axis=1).mean()) if len(others) else 0.0
