"""Held-out evaluation: what a model finds by sampling alone, from scratch."""

from __future__ import annotations

import math

import numpy as np
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from evolve.metrics import chain_best_at_k, chain_pass_at_k, reward_diversity
from evolve.randomness import generator
from trainer.config import EvalConfig
from trainer.domains.base import Domain
from trainer.rollout.torch_sampler import sample
from trainer.scoring import reward_tensor

_BATCH = 16


def evaluate(
    model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, domain: Domain, m: int, config: EvalConfig
) -> dict[str, float]:
    """pass@1, pass@k, best@1, best@k and reward diversity over ``config.problems`` held-out problems.

    k = ``config.answers`` answers a problem, drawn as ceil(k / m) whole chains (the last one cut to a prefix).
    best@1 is the mean of the first answers; diversity the mean pairwise L1 distance of a problem's reward vectors.
    """
    chains = math.ceil(config.answers / m)
    rows = []
    for start in range(0, config.problems, _BATCH):
        indices = range(start, min(start + _BATCH, config.problems))
        problems = [domain.problem(generator(config.seed, "held-out", i), heldout=True) for i in indices]
        keys = [[(config.seed, "evaluate", i, g) for g in range(chains)] for i in indices]
        prompts = [domain.prompt(problem, m) for problem in problems]
        rollouts = sample(model, tokenizer, prompts, keys, max_tokens=domain.prompt_format(m).max_tokens)
        rewards, components, _ = reward_tensor(domain, problems, rollouts.texts, m)
        rows += [_problem_metrics(rewards[p][..., components[p]], config.answers) for p in range(len(problems))]
    means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    return {name: round(value, 4) for name, value in means.items()}


def _problem_metrics(rewards: np.ndarray, answers: int) -> dict[str, float]:
    """Metrics of one problem's rewards, shape (chains, m, d)."""
    scalars = rewards.mean(axis=-1)
    return {
        "pass@1": chain_pass_at_k(scalars == 1, 1),
        f"pass@{answers}": chain_pass_at_k(scalars == 1, answers),
        "best@1": chain_best_at_k(scalars, 1),
        f"best@{answers}": chain_best_at_k(scalars, answers),
        "diversity": reward_diversity(rewards.reshape(-1, rewards.shape[-1])[:answers]),
    }
