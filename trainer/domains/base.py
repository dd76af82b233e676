"""What the trainer needs to know about a domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from transformers import PreTrainedTokenizerFast

from evolve.manifest import PromptFormat


@dataclass(frozen=True, slots=True)
class Example:
    """A supervised example: the completion is what the model should write, without its end mark."""

    prompt: str
    completion: str


class Domain(Protocol):
    """Problems with vector rewards. Problems are opaque to the trainer; it only hands them back."""

    name: str
    chain_length: int

    def build_tokenizer(self) -> PreTrainedTokenizerFast:
        """The domain's own tokenizer, for models made from scratch."""

    def prompt_format(self, m: int) -> PromptFormat:
        """How prompts for m answers are written; goes into the manifest."""

    def example(self, rng: np.random.Generator, m: int) -> Example:
        """A supervised example with m answers, from the training side of the split."""

    def problem(self, rng: np.random.Generator, *, heldout: bool) -> Any:
        """A random problem of one side of the split."""

    def prompt(self, problem: Any, m: int, parent: str | None = None) -> str:
        """The prompt for m answers; with a parent's source, a mutation prompt."""

    def rewards(self, problem: Any, answer: str) -> np.ndarray:
        """The reward vector of an answer, shape (d,), each in [0, 1]."""
