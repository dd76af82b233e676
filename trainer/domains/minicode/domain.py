"""minicode as a :class:`trainer.domains.base.Domain`."""

from __future__ import annotations

import numpy as np
from transformers import PreTrainedTokenizerFast

from evolve.manifest import PromptFormat
from trainer.domains.base import DomainError, ExactDomain, Example
from trainer.domains.minicode import language, prompting, warmup
from trainer.domains.minicode.grammar import parse
from trainer.domains.minicode.problems import Problem, random_problem


class MinicodeDomain(ExactDomain):
    name = "minicode"
    chain_length = language.CHAIN_LENGTH
    mutates = True

    def build_tokenizer(self) -> PreTrainedTokenizerFast:
        return language.build_tokenizer()

    def prompt_format(self, m: int) -> PromptFormat:
        return language.prompt_format(m)

    def example(self, rng: np.random.Generator, m: int) -> Example:
        return warmup.example(rng, m)

    def problem(self, rng: np.random.Generator, *, heldout: bool) -> Problem:
        return random_problem(rng, heldout=heldout)

    def components(self, problem: Problem) -> tuple[str, ...]:
        return tuple(f"t{i:02d}" for i in range(problem.d))

    def prompt(self, problem: Problem, m: int, parent: str | None = None, goal: np.ndarray | None = None) -> str:
        """Parents outside of the grammar (a search's identity seed is inside) give a prompt from scratch."""
        if goal is not None:
            raise DomainError("minicode's prompts cannot state weights: use another estimator than goal_conditioned")
        return prompting.prompt(problem, m, None if parent is None else parse(parent))

    def rewards(self, problem: Problem, answer: str) -> np.ndarray:
        """Zeros for answers outside of the grammar: see :mod:`trainer.domains.minicode.grammar`."""
        return problem.rewards(parse(answer))
