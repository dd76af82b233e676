"""From generated texts to reward vectors, through the chain format that the search uses too."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evolve.chain import Answer, ChainFormat, parse_chain
from trainer.domains.base import Domain, Judged


@dataclass(frozen=True, slots=True)
class Scores:
    """Judgements of P problems' G rollouts with m places for answers; D is the largest number of components.

    rewards: (P, G, m, D), in the places the answers were given; zero rows where one is missing or repeats another.
    scalars: (P, G, m), the task scalars. components: (P, D), true where a component exists.
    valid: (P, G, m), false where the judge, not the answer, failed. answers: per rollout, the distinct ones in order.
    """

    rewards: np.ndarray
    scalars: np.ndarray
    components: np.ndarray
    valid: np.ndarray
    answers: list[list[Answer]]

    @property
    def solved(self) -> np.ndarray:
        """Whether each answer reaches the full task scalar, shape (P, G, m)."""
        return self.scalars >= 1 - 1e-9


def answers_of(text: str, m: int) -> list[Answer]:
    """The distinct answers of a generation, at most m."""
    return list(parse_chain(text, ChainFormat(m=m)).answers)


async def judge_texts(domain: Domain, problems: Sequence[Any], texts: Sequence[str], m: int) -> list[list[Judged]]:
    """The judgement of each answer of each text; ``texts`` holds equally many for each problem, in their order."""
    group = len(texts) // len(problems)

    async def judge(index: int, text: str) -> list[Judged]:
        return [await domain.judge(problems[index // group], answer.text) for answer in answers_of(text, m)]

    return list(await asyncio.gather(*(judge(index, text) for index, text in enumerate(texts))))


def collect_scores(
    domain: Domain, problems: Sequence[Any], texts: Sequence[str], judged: Sequence[Sequence[Judged]], m: int
) -> Scores:
    """Arrange judgements, as :func:`judge_texts` gives them, in arrays."""
    group = len(texts) // len(problems)
    sizes = np.array([len(domain.components(problem)) for problem in problems])
    width = int(sizes.max())
    rewards = np.zeros((len(problems), group, m, width))
    scalars = np.zeros((len(problems), group, m))
    valid = np.ones((len(problems), group, m), dtype=bool)
    answers = [answers_of(text, m) for text in texts]
    for row, (found, verdicts) in enumerate(zip(answers, judged, strict=True)):
        for answer, verdict in zip(found, verdicts, strict=True):
            place = (row // group, row % group, answer.index)
            if verdict.failure is not None:
                valid[place] = False
                continue
            rewards[place][: len(verdict.reward)] = verdict.reward
            scalars[place] = verdict.scalar
    return Scores(rewards, scalars, np.arange(width)[None] < sizes[:, None], valid, answers)
