"""From generated texts to reward vectors, through the chain format that the search uses too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evolve.chain import ChainFormat, parse_chain
from trainer.domains.base import Domain


def answers_of(text: str, m: int) -> list[str]:
    """The distinct answers of a generation, at most m."""
    return [answer.text for answer in parse_chain(text, ChainFormat(m=m)).answers]


def reward_tensor(
    domain: Domain, problems: Sequence[Any], texts: Sequence[str], m: int
) -> tuple[np.ndarray, np.ndarray, list[list[str]]]:
    """Rewards (P, G, m, D), component mask (P, D) and the answers of each generation; missing answers are zero rows."""
    group = len(texts) // len(problems)
    answers = [answers_of(text, m) for text in texts]
    rows = [[domain.rewards(problems[i // group], answer) for answer in found] for i, found in enumerate(answers)]
    sizes = [len(domain.rewards(problem, "")) for problem in problems]
    rewards = np.zeros((len(problems), group, m, max(sizes)))
    for i, vectors in enumerate(rows):
        for slot, vector in enumerate(vectors):
            rewards[i // group, i % group, slot, : len(vector)] = vector
    components = np.arange(max(sizes))[None] < np.array(sizes)[:, None]
    return rewards, components, answers
