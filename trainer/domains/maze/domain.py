"""The maze as a :class:`trainer.domains.base.Domain`."""

from __future__ import annotations

import random
from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from transformers import PreTrainedTokenizerFast

from evolve.chain import ChainFormat
from evolve.manifest import PromptFormat
from evolve.strict import StrictModel
from trainer.domains.base import DomainError, ExactDomain, Example, Prompt
from trainer.domains.maze import language
from trainer.domains.maze.generator import MAX_SIZE, MIN_SIZE, Maze, max_budget, random_maze
from trainer.domains.maze.planner import distinct_routes
from trainer.domains.maze.rules import COMPONENTS, RewardKind, rewards

_TOKENS_PER_WORD = 3  # of a pretrained model's vocabulary, with room to spare
_REASONING_TOKENS = 256


class MazeOptions(StrictModel):
    """size: rows and columns. form: ``compact`` for models made from scratch, ``chat`` for pretrained ones.

    reward: ``linear`` or ``squared`` (with the bonus), see :func:`trainer.domains.maze.rules.rewards`.
    goal_share: share of the warm-up examples whose prompt states weights; their routes do not depend on them, so a
        model knows the words but not what they mean.
    """

    size: Annotated[int, Field(ge=MIN_SIZE, le=MAX_SIZE)] = 9
    form: Literal["compact", "chat"] = "compact"
    reward: RewardKind = "linear"
    goal_share: Annotated[float, Field(ge=0, le=1)] = 0.1


class MazeDomain(ExactDomain):
    name = "maze"

    def __init__(self, options: MazeOptions) -> None:
        self.options = options

    def build_tokenizer(self) -> PreTrainedTokenizerFast:
        if self.options.form == "chat":
            raise DomainError("options of domain 'maze': form 'chat' needs a pretrained model; use form 'compact'")
        return language.build_tokenizer(self.options.size)

    def prompt_format(self, m: int) -> PromptFormat:
        if self.options.form == "compact":
            return PromptFormat(kind="completion", max_tokens=m * language.answer_tokens(self.options.size) + 1)
        room = m * (_TOKENS_PER_WORD * max_budget(self.options.size) + 16)
        return PromptFormat(kind="chat", max_tokens=room + _REASONING_TOKENS)

    def example(self, rng: np.random.Generator, m: int) -> Example:
        maze = self.problem(rng, heldout=False)
        source = random.Random(int(rng.integers(2**63)))
        goal = rng.dirichlet(np.ones(len(COMPONENTS))) if source.random() < self.options.goal_share else None
        routes = distinct_routes(maze, m, source)
        compact = self.options.form == "compact"
        texts = [language.route_text(cells) if compact else language.words(cells, maze.start) for cells in routes]
        chain = ChainFormat(m=m)
        return Example(self.prompt(maze, m, None, goal), "".join(chain.open + text + chain.close for text in texts))

    def problem(self, rng: np.random.Generator, *, heldout: bool) -> Maze:
        return random_maze(rng, self.options.size, heldout=heldout)

    def components(self, problem: Maze) -> tuple[str, ...]:
        return COMPONENTS

    def prompt(self, problem: Maze, m: int, parent: str | None = None, goal: np.ndarray | None = None) -> Prompt:
        if parent is not None:
            raise DomainError("the maze has no mutation prompts: set mutation_share to 0")
        if self.options.form == "compact":
            return language.compact_prompt(problem, m, goal)
        return [{"role": "user", "content": language.chat_prompt(problem, m, goal)}]

    def rewards(self, problem: Maze, answer: str) -> np.ndarray:
        read = language.read_route(answer, problem) if self.options.form == "compact" else language.read_words(answer)
        return rewards(problem, read, self.options.reward)
