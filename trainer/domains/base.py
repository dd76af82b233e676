"""What the trainer needs to know about a domain.

A domain makes problems (on two sides of a split), asks for answers, and judges each answer by a reward vector with
named components. The training loop knows nothing else about it:

- ``await ask(problem, m, parent=..., goal=...)`` gives the prompt: text for a model with the domain's own vocabulary,
  chat messages for a pretrained one (:attr:`PromptFormat.kind` says which).
- ``await judge(problem, answer)`` gives the reward vector and the task scalar, or says that the judge itself failed;
  such an answer must be masked, never scored.

The number of components d may differ from problem to problem. :class:`ExactDomain` is the base of domains that judge in
process, without waiting for anything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from transformers import PreTrainedTokenizerFast

from evolve.manifest import PromptFormat

Messages = list[dict[str, str]]
"""Chat messages, each with ``role`` and ``content``."""

Prompt = str | Messages


class DomainError(ValueError):
    """A domain cannot be used as asked (options, data files, from-scratch models); the message says how to mend it."""


@dataclass(frozen=True, slots=True)
class Example:
    """A supervised example: the completion is what the model should write, without its end mark."""

    prompt: Prompt
    completion: str


@dataclass(frozen=True, slots=True)
class Judged:
    """The judgement of one answer.

    reward: shape (d,), each in [0, 1]. scalar: the task scalar in [0, 1].
    failure: why the judge, not the answer, failed; then reward and scalar mean nothing and the answer is masked.
    """

    reward: np.ndarray
    scalar: float
    failure: str | None = None


class Domain(ABC):
    """Problems with vector rewards. Problems are opaque to the trainer; it only hands them back.

    name: as in a configuration. chain_length: answers of a chain unless the configuration says otherwise.
    mutates: whether a prompt may show a parent (an earlier answer to the same problem) to improve.
    """

    name: ClassVar[str]
    chain_length: int = 3
    mutates: bool = False

    def build_tokenizer(self) -> PreTrainedTokenizerFast:
        """The domain's own tokenizer, for models made from scratch."""
        raise DomainError(f"domain {self.name!r} has no vocabulary of its own: start from a pretrained model (`init`)")

    @abstractmethod
    def prompt_format(self, m: int) -> PromptFormat:
        """How prompts for m answers are written, and the room that they need; goes into the manifest."""

    def example(self, rng: np.random.Generator, m: int) -> Example:
        """A supervised example with m answers, from the training side of the split."""
        raise DomainError(f"domain {self.name!r} has no supervised examples: leave out the warm-up")

    @abstractmethod
    def problem(self, rng: np.random.Generator, *, heldout: bool) -> Any:
        """A random problem of one side of the split; it depends on the generator's state alone."""

    @abstractmethod
    def components(self, problem: Any) -> tuple[str, ...]:
        """Names of the reward components of a problem, length d."""

    def weights(self, problem: Any) -> np.ndarray:
        """The task's own weights w*, shape (d,), non-negative, summing to 1; uniform unless the domain says otherwise.

        The task scalar of :meth:`judge` is ``w* @ reward`` in every domain but ``openevolve``, whose evaluators may
        give a combined score of their own.
        """
        d = len(self.components(problem))
        return np.full(d, 1 / d)

    @abstractmethod
    async def ask(self, problem: Any, m: int, *, parent: str | None = None, goal: np.ndarray | None = None) -> Prompt:
        """The prompt for m answers.

        parent: an earlier answer to improve (a mutation prompt), where the domain :attr:`mutates`.
        goal: weights over the components, shape (d,), summing to 1, that the prompt states (``goal_conditioned``).
        """

    @abstractmethod
    async def judge(self, problem: Any, answer: str) -> Judged:
        """Judge one answer; a bad answer never raises."""

    async def close(self) -> None:  # noqa: B027 (most domains hold nothing)
        """Release what the domain holds (a sandbox). It cannot be used afterwards."""


class ExactDomain(Domain):
    """A domain whose prompts and rewards are computed in process."""

    @abstractmethod
    def prompt(self, problem: Any, m: int, parent: str | None = None, goal: np.ndarray | None = None) -> Prompt:
        """What :meth:`ask` gives."""

    @abstractmethod
    def rewards(self, problem: Any, answer: str) -> np.ndarray:
        """The reward vector of an answer, shape (d,), each in [0, 1]."""

    async def ask(self, problem: Any, m: int, *, parent: str | None = None, goal: np.ndarray | None = None) -> Prompt:
        return self.prompt(problem, m, parent, goal)

    async def judge(self, problem: Any, answer: str) -> Judged:
        reward = self.rewards(problem, answer)
        return Judged(reward, float(self.weights(problem) @ reward))


def goal_text(components: Sequence[str], goal: np.ndarray) -> str:
    """How chat prompts state the weights of a goal-conditioned rollout."""
    parts = ", ".join(f"{name} {weight:.2f}" for name, weight in zip(components, goal, strict=True))
    return f"What counts, and how much (weights sum to 1): {parts}."
