"""What is asked of the model in one iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evolve.chain import ChainFormat
from evolve.chat import Budget, render_chat
from evolve.config import SearchConfig
from evolve.manifest import Manifest
from evolve.program import Program
from evolve.prompts import PromptContext, render_completion
from evolve.randomness import derived_seed
from evolve.task import Task, prompt_context

DEFAULT_MAX_TOKENS = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One iteration's request.

    parents: numbers of the programs to improve (none: from scratch). inspirations: numbers of those shown beside.
    operator: ``scratch``, ``rewrite`` or ``diff``. strategy: how the parent was chosen (``scratch``, ``none`` where
        there was no choice, else a key of :data:`evolve.selection.STRATEGIES`).
    parent_source: the text that edits apply to; ``None`` for ``scratch``.
    messages, text: the prompt as chat messages or as plain text; exactly one of them is set.
    n: completions wanted. m: answers wanted in each. seed: for the model server, in [0, 2**31).
    """

    iteration: int
    island: int
    parents: tuple[int, ...] = ()
    inspirations: tuple[int, ...] = ()
    operator: str = "scratch"
    strategy: str = "none"
    parent_source: str | None = None
    messages: tuple[dict[str, str], ...] | None = None
    text: str | None = None
    n: int = 1
    m: int = 1
    seed: int = 0
    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = DEFAULT_MAX_TOKENS
    stop: tuple[str, ...] = ()


class RequestBuilder:
    """Turns a choice of parent and inspirations into a request, in the form that the model was trained for.

    Raises ``ValueError`` where config and manifest cannot go together.
    """

    def __init__(self, task: Task, config: SearchConfig, *, seed: int, manifest: Manifest | None) -> None:
        self._task, self._config, self._seed, self._manifest = task, config, seed, manifest
        self._completion = manifest is not None and manifest.prompt.kind == "completion"
        self.chain = manifest.chain if manifest else ChainFormat(m=config.answers)
        if manifest and self._completion and manifest.prompt.template is None:
            raise ValueError(f"the manifest of {manifest.name} is of kind 'completion' but has no template: add one")
        if self._completion and config.edit == "diff":
            raise ValueError("edit 'diff' needs a chat model, and the manifest asks for completions: use edit 'whole'")

    def build(
        self, iteration: int, island: int, *, parent: Program | None, inspirations: Sequence[Program], strategy: str
    ) -> Request:
        """The request of ``iteration``. Raises :class:`evolve.prompts.PromptError`."""
        config = self._config
        edit = config.edit if parent else "whole"
        context = prompt_context(self._task, parent=parent, inspirations=inspirations, m=self.chain.m, edit=edit)
        messages, text = self._prompt(context)
        return Request(
            iteration=iteration,
            island=island,
            parents=(parent.number,) if parent else (),
            inspirations=tuple(program.number for program in inspirations),
            operator="scratch" if parent is None else "diff" if edit == "diff" else "rewrite",
            strategy=strategy,
            parent_source=parent.source if parent else None,
            messages=messages,
            text=text,
            n=config.samples,
            m=self.chain.m,
            seed=derived_seed(self._seed, iteration, "model"),
            temperature=config.temperature,
            top_p=config.top_p,
            max_tokens=self._max_tokens(),
            stop=self._manifest.prompt.stop if self._manifest else (),
        )

    def _prompt(self, context: PromptContext) -> tuple[tuple[dict[str, str], ...] | None, str | None]:
        if self._manifest and self._completion and self._manifest.prompt.template is not None:
            return None, render_completion(self._manifest.prompt.template, context)
        chars = self._config.prompt_chars
        budget = Budget().scaled(chars) if chars is not None else None
        return tuple(render_chat(context, self.chain, budget=budget)), None

    def _max_tokens(self) -> int:
        if self._manifest and (self._completion or self._config.max_tokens is None):
            return self._manifest.prompt.max_tokens
        return self._config.max_tokens or DEFAULT_MAX_TOKENS
