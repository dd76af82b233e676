"""What the domains over texts share: files or a synthetic generator, compact and chat prompts, warm-up examples."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from transformers import PreTrainedTokenizerFast

from evolve.chain import ChainFormat
from evolve.manifest import PromptFormat
from evolve.strict import StrictModel
from trainer.domains.base import DomainError, ExactDomain, Example, Messages, Prompt, goal_text
from trainer.domains.records import Split, is_held_out, make_split, read_records
from trainer.domains.vocabulary import word_tokenizer

P = TypeVar("P")
_TARGET_POSITION = (0.6, 0.25, 0.15)
_TRIES = 20


class TextOptions(StrictModel):
    """training, heldout: files in the data set's published format; without them problems are synthetic.

    Without ``heldout`` one of sixteen problems of ``training`` is held out. form: ``chat`` for pretrained models,
    ``compact`` for models made from scratch (synthetic problems only: their vocabulary is closed).
    """

    training: Path | None = None
    heldout: Path | None = None
    form: Literal["compact", "chat"] = "chat"


class TextDomain(ExactDomain, Generic[P]):
    """A domain whose problems and answers are texts. Subclasses say what a problem is and what an answer earns.

    answer_tokens: room for one answer, of a compact model and of a pretrained one. samples: two well-formed answers to
        some other problem, which chat prompts show: small models follow what they are shown.
    """

    samples: ClassVar[tuple[str, str]]

    answer_tokens: tuple[int, int] = (32, 160)
    reasoning_tokens = 256

    def __init__(self, options: TextOptions) -> None:
        self.options = options
        self._split = self._load(options)

    @abstractmethod
    def read(self, record: Mapping[str, Any]) -> P | None:
        """A problem from a published record; ``None`` where it is none (unanswerable). Raises ``KeyError`` and such."""

    @abstractmethod
    def synthetic(self, source: random.Random) -> P:
        """A synthetic problem of the same shape."""

    @abstractmethod
    def content(self, problem: P) -> str:
        """What decides on which side of the split a problem is."""

    @abstractmethod
    def words(self) -> Iterable[str]:
        """The vocabulary of the synthetic problems and their answers."""

    @abstractmethod
    def facts(self, problem: P) -> str:
        """What the prompt tells, in both forms."""

    @abstractmethod
    def instruction(self, problem: P) -> str:
        """Chat only: the task, and how one answer is written."""

    @abstractmethod
    def solution(self, problem: P) -> str:
        """An answer that earns everything."""

    @abstractmethod
    def variation(self, problem: P, source: random.Random) -> str:
        """A well-formed answer with something wrong, for the chains of the warm-up."""

    def build_tokenizer(self) -> PreTrainedTokenizerFast:
        if self.options.form == "chat":
            raise DomainError(f"options of domain {self.name!r}: form 'chat' needs a pretrained model; use 'compact'")
        return word_tokenizer([*self.words(), *(str(number) for number in range(100))])

    def prompt_format(self, m: int) -> PromptFormat:
        compact, chat = self.answer_tokens
        if self.options.form == "compact":
            return PromptFormat(kind="completion", max_tokens=m * (compact + 2) + 1)
        return PromptFormat(kind="chat", max_tokens=m * (chat + 8) + self.reasoning_tokens)

    def problem(self, rng: np.random.Generator, *, heldout: bool) -> P:
        if self._split is not None:
            return self._split.draw(rng, heldout=heldout)
        source = random.Random(int(rng.integers(2**63)))
        while True:
            problem = self.synthetic(source)
            if is_held_out(self.content(problem)) is heldout:
                return problem

    def prompt(self, problem: P, m: int, parent: str | None = None, goal: np.ndarray | None = None) -> Prompt:
        if parent is not None:
            raise DomainError(f"domain {self.name!r} has no mutation prompts: set mutation_share to 0")
        if self.options.form == "compact":
            weights = "" if goal is None else "w" + "".join(f" {round(10 * float(weight))}" for weight in goal) + "\n"
            return f"{self.facts(problem)}\n{weights}= {m}\n"
        stated = "" if goal is None else goal_text(self.components(problem), goal)
        return self.messages(problem, "\n\n".join(part for part in (stated, self._form(m)) if part))

    def messages(self, problem: P, closing: str) -> Messages:
        """The chat messages; ``closing`` says how many answers are wanted and what counts."""
        return [
            {"role": "user", "content": f"{self.instruction(problem)}\n\n{self.facts(problem)}\n\n{closing}"},
        ]

    def example(self, rng: np.random.Generator, m: int) -> Example:
        """The solution, early in the chain more often than late, and variations of it in the other places."""
        problem = self.problem(rng, heldout=False)
        source = random.Random(int(rng.integers(2**63)))
        weights = [*_TARGET_POSITION, *([0.0] * m)][:m]
        position = source.choices(range(m), weights)[0]
        answers: list[str] = []
        for place in range(m):
            candidates = (self.variation(problem, source) for _ in range(_TRIES))
            answers.append(
                self.solution(problem)
                if place == position
                else next((c for c in candidates if c not in answers), self.variation(problem, source))
            )
        chain = ChainFormat(m=m)
        return Example(self.prompt(problem, m), "".join(chain.open + answer + chain.close for answer in answers))

    def _form(self, m: int) -> str:
        """How many answers are wanted, and what a reply looks like."""
        chain = ChainFormat(m=m)
        wanted = (
            f"Put your answer between {chain.open} and {chain.close}, in this form:"
            if m == 1
            else f"Give {m} different answers that differ in substance, not in wording, each between {chain.open} and "
            f"{chain.close}, in this form (two are shown):"
        )
        shown = self.samples[: min(m, 2)]
        return "\n".join([wanted, *(f"{chain.open}\n{sample}\n{chain.close}" for sample in shown)])

    def _load(self, options: TextOptions) -> Split[P] | None:
        if options.training is None:
            if options.heldout is not None:
                raise DomainError(f"options of domain {self.name!r}: heldout needs training: name both files")
            return None
        if options.form == "compact":
            raise DomainError(f"options of domain {self.name!r}: files need form 'chat': their vocabulary is open")
        heldout = None if options.heldout is None else self._read_file(options.heldout)
        return make_split(self._read_file(options.training), heldout, self.content, where=str(options.training))

    def _read_file(self, path: Path) -> list[P]:
        problems = []
        for number, record in enumerate(read_records(path)):
            try:
                problem = self.read(record)
            except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
                raise DomainError(f"{path}: record {number} is not in the format of {self.name}: {error!r}") from None
            if problem is not None:
                problems.append(problem)
        return problems
