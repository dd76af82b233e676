"""Supervised examples that teach the formats and a first idea of the task.

Half of the prompts are from scratch, half give a parent (the target with one to three random edits, or the identity).
A single-answer example is answered by the target. A chain holds the target once, early more often than late, and near
misses elsewhere: the chain format is learned together with the habit of trying something else in the next answer.
"""

from __future__ import annotations

import numpy as np

from evolve.chain import ChainFormat
from trainer.domains.base import Example
from trainer.domains.minicode.grammar import Program
from trainer.domains.minicode.problems import Problem, mutate, random_problem
from trainer.domains.minicode.prompting import prompt

_TARGET_POSITION = (0.6, 0.25, 0.15)
_STRAIGHT = 0.35
"""Share of straight-line targets: they show single operations without a condition in the way."""
IDENTITY = Program(())


def example(rng: np.random.Generator, m: int) -> Example:
    """One example for m answers (m = 1 or the chain length)."""
    problem = random_problem(rng, heldout=False, straight=_STRAIGHT)
    parent = random_parent(problem, rng) if rng.random() < 0.5 else None
    answers = [problem.target] if m == 1 else _chain(problem.target, rng, m)
    chain = ChainFormat(m=m)
    text = "".join(chain.open + answer.source + chain.close for answer in answers)
    return Example(prompt(problem, m, parent), text)


def random_parent(problem: Problem, rng: np.random.Generator) -> Program:
    """A parent as a search might hold: some edits away from the target."""
    if rng.random() < 0.05:
        return IDENTITY
    return mutate(problem.target, rng, edits=int(rng.integers(1, 4)))


def _chain(target: Program, rng: np.random.Generator, m: int) -> list[Program]:
    weights = np.array([*_TARGET_POSITION, *([0.0] * m)])[:m]
    position = int(rng.choice(m, p=weights / weights.sum()))
    answers: list[Program] = []
    while len(answers) < m:
        answer = target if len(answers) == position else mutate(target, rng, edits=1 + int(rng.random() < 0.3))
        if answer not in answers:
            answers.append(answer)
    return answers
