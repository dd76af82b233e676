"""What is asked of the model in one iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from evolve.adaptation import Form
from evolve.chain import ChainFormat
from evolve.chat import Budget, fit_chat, fit_messages, render_chat
from evolve.config import ModelConfig, SearchConfig
from evolve.manifest import Manifest
from evolve.openevolve_prompt import read_templates, render
from evolve.operators import IMPROVE, OPERATORS, carried
from evolve.program import Program
from evolve.prompts import PromptContext, PromptError, ShownChange, render_completion, template_variables
from evolve.randomness import derived_seed, generator
from evolve.task import OpenEvolveTask, Task, TestsTask, prompt_context
from evolve.tokens import CountTokens, estimate_tokens

DEFAULT_MAX_TOKENS = 1024
_ANY_MODEL = ModelConfig(name="any")

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One iteration's request.

    parents: numbers of the programs to improve or to combine (none: from scratch). inspirations: numbers of those shown
        beside. base: the task scalar that a child must exceed to count as an improvement.
    operator: how a child will have been made: ``scratch``, ``rewrite`` or ``diff`` (which improve), or another key of
        :data:`evolve.operators.OPERATORS`. move: that key, ``None`` for ``scratch``.
    edit, form: what answers are to be, ``whole`` or ``diff``, and the name of the form that was chosen, where there was
        a choice. model: the one to ask, where the configuration names any.
    strategy: how the parent was chosen (``scratch``, ``none`` where there was no choice, else a key of
        :data:`evolve.selection.STRATEGIES`).
    parent_source: the text that edits apply to; ``None`` for ``scratch``.
    messages, text: the prompt as chat messages or as plain text; exactly one of them is set.
    n: completions wanted. m: answers wanted in each. seed: for the model server, in [0, 2**31).
    """

    iteration: int
    island: int
    parents: tuple[int, ...] = ()
    inspirations: tuple[int, ...] = ()
    base: float = 0.0
    operator: str = "scratch"
    move: str | None = None
    edit: str = "whole"
    form: str | None = None
    model: str | None = None
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Approach:
    """How a parent is to be changed, and what is told beside it.

    move: a key of :data:`evolve.operators.OPERATORS`. mate, focus: what that operator needs.
    form: of the answers; ``None`` takes the configured one. model: the one to ask.
    """

    move: str = IMPROVE
    mate: Program | None = None
    focus: tuple[str, ...] = ()
    form: Form | None = None
    model: str | None = None
    history: tuple[ShownChange, ...] = ()
    notes: tuple[str, ...] = ()


_PLAIN = Approach()


class RequestBuilder:
    """Turns a choice of parent and inspirations into a request, in the form that the model was trained for.

    count_tokens: of a text, by the model's tokenizer; ``None`` estimates.
    Raises ``ValueError`` where config and manifest cannot go together.
    """

    def __init__(
        self,
        task: Task,
        config: SearchConfig,
        *,
        seed: int,
        manifest: Manifest | None,
        count_tokens: CountTokens | None = None,
    ) -> None:
        self._task, self._config, self._seed, self._manifest = task, config, seed, manifest
        self._count_tokens = count_tokens or estimate_tokens
        self._completion = manifest is not None and manifest.prompt.kind == "completion"
        self.chain = manifest.chain if manifest else ChainFormat(m=config.answers)
        if manifest and self._completion and manifest.prompt.template is None:
            raise ValueError(f"the manifest of {manifest.name} is of kind 'completion' but has no template: add one")
        if self._completion and config.edit == "diff":
            raise ValueError("edit 'diff' needs a chat model, and the manifest asks for completions: use edit 'whole'")
        if self._completion and isinstance(task, OpenEvolveTask) and task.several_files:
            raise ValueError("a program of several files needs a chat model, and the manifest asks for completions")
        self._templates = read_templates(task) if isinstance(task, OpenEvolveTask) else None
        self._variables = self._template_variables()
        if not any(weight and name in self.operators for name, weight in config.operators.weights().items()):
            raise ValueError("the manifest's template can carry none of the operators: give improve a weight")

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators that prompts can carry."""
        return tuple(name for name in OPERATORS if carried(name, self._variables))

    @property
    def edits(self) -> tuple[str, ...]:
        """The forms of edit that may be asked for."""
        if self._config.edit != "auto":
            return (self._config.edit,)
        return ("whole",) if self._completion else ("whole", "diff")

    @property
    def splits(self) -> bool:
        """Whether the m answers of a chain may be asked for one by one: not of a model that has its own format."""
        return self._config.edit == "auto" and self._manifest is None and self.chain.m > 1

    def shows(self, variable: str) -> bool:
        """Whether prompts can show something, by its name in :class:`evolve.prompts.PromptContext`."""
        return self._variables is None or variable in self._variables

    def focus(
        self, move: str, parent: Program, mate: Program | None, rng: np.random.Generator
    ) -> tuple[str, ...] | None:
        """The shown tests that an operator is about; ``None`` where it has nothing to work on."""
        task = self._task
        if OPERATORS[move].mates and mate is None:
            return None
        own = task.prompt_tests(parent.evaluation) if isinstance(task, TestsTask) else ()
        other = task.prompt_tests(mate.evaluation) if isinstance(task, TestsTask) and mate else ()
        return OPERATORS[move].focus(own, other, rng)

    def build(
        self,
        iteration: int,
        island: int,
        *,
        parent: Program | None,
        inspirations: Sequence[Program],
        strategy: str,
        approach: Approach = _PLAIN,
        base: float = 0.0,
    ) -> Request:
        """The request of ``iteration``. Raises :class:`evolve.prompts.PromptError`."""
        config, form = self._config, approach.form or Form(self.edits[0])
        edit = form.edit if parent else "whole"
        m, n = (1, config.samples * self.chain.m) if form.single else (self.chain.m, config.samples)
        messages, text = self._prompt(self._context(parent, inspirations, approach, m, edit), iteration)
        parents = [program.number for program in (parent, approach.mate if parent else None) if program]
        model = self._model(approach.model)
        move = approach.move if parent else None
        return Request(
            iteration=iteration,
            island=island,
            parents=tuple(parents),
            inspirations=tuple(program.number for program in inspirations),
            base=base,
            operator=_operator(move, edit),
            move=move,
            edit=edit,
            form=Form(edit, form.single).name if config.edit == "auto" else None,
            model=approach.model,
            strategy=strategy,
            parent_source=parent.source if parent else None,
            messages=messages,
            text=text,
            n=n,
            m=m,
            seed=derived_seed(self._seed, iteration, "model"),
            temperature=_first(model.temperature, config.temperature),
            top_p=_first(model.top_p, config.top_p),
            max_tokens=self._max_tokens(model),
            stop=self._manifest.prompt.stop if self._manifest else (),
        )

    def _context(
        self, parent: Program | None, inspirations: Sequence[Program], approach: Approach, m: int, edit: str
    ) -> PromptContext:
        mate = approach.mate if parent else None
        if mate and not self.shows("mate"):  # the template knows it only as the first of the others
            inspirations = [mate, *(program for program in inspirations if program.digest != mate.digest)]
        context = prompt_context(self._task, parent=parent, inspirations=inspirations, m=m, edit=edit, mate=mate)
        if parent is None:
            return replace(context, notes=approach.notes)
        return replace(
            context, operator=approach.move, focus=approach.focus, history=approach.history, notes=approach.notes
        )

    def _template_variables(self) -> frozenset[str] | None:
        """The variables of a compact template; ``None`` for chat, which shows everything."""
        if self._manifest and self._completion and self._manifest.prompt.template is not None:
            return template_variables(self._manifest.prompt.template)
        return None

    def _prompt(self, context: PromptContext, iteration: int) -> tuple[tuple[dict[str, str], ...] | None, str | None]:
        if self._manifest and self._completion and self._manifest.prompt.template is not None:
            return None, render_completion(self._manifest.prompt.template, context)
        chars, limit = self._config.prompt_chars, self._config.prompt_tokens
        budget = Budget().scaled(chars) if chars is not None else None
        chain = self.chain.model_copy(update={"m": context.m})
        if self._templates is not None and context.parent is not None and self._templates.serves(context.edit):
            return self._from_templates(context, chain, iteration, budget or Budget()), None
        if limit is None:
            return tuple(render_chat(context, chain, budget=budget)), None
        return tuple(fit_chat(context, chain, limit=limit, count=self._count_tokens, budget=budget)), None

    def _from_templates(
        self, context: PromptContext, chain: ChainFormat, iteration: int, budget: Budget
    ) -> tuple[dict[str, str], ...]:
        """The prompt in the task's own words."""
        templates, limit = self._templates, self._config.prompt_tokens
        assert templates is not None  # asked before

        def rendered(room: Budget) -> list[dict[str, str]]:
            return render(templates, context, chain, generator(self._seed, iteration, "template"), budget=room)

        if limit is None:
            return tuple(rendered(budget))
        messages = fit_messages(rendered, budget, limit=limit, count=self._count_tokens)
        if messages is None:
            raise PromptError(f"the task's template needs more than {limit} tokens: raise prompt_tokens")
        return tuple(messages)

    def _model(self, name: str | None) -> ModelConfig:
        """What is configured of a model; where none is named, of the only one."""
        found = [model for model in self._config.models if name in (None, model.name)]
        return found[0] if found else _ANY_MODEL

    def _max_tokens(self, model: ModelConfig) -> int:
        wanted = _first(model.max_tokens, self._config.max_tokens)
        if self._manifest and (self._completion or wanted is None):
            return self._manifest.prompt.max_tokens
        return wanted or DEFAULT_MAX_TOKENS


def _first(own: T | None, common: T) -> T:
    """A model's own setting, or the search's."""
    return common if own is None else own


def _operator(move: str | None, edit: str) -> str:
    """How a child will have been made."""
    if move is None:
        return "scratch"
    return move if move != IMPROVE else "diff" if edit == "diff" else "rewrite"
