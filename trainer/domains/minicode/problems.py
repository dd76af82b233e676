"""Problems of minicode: a hidden target, its tests, and the split into training and held-out targets.

A target belongs to the held-out side if the digest of its *behaviour* (its outputs on fixed probe inputs) falls into
one bucket of sixteen. So a held-out target differs from every training target by behaviour, hence also by syntax tree,
and no list of targets needs to be kept. Programs shown in supervised data (targets, parents, near misses) are all drawn
from the training side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from evolve.randomness import generator
from trainer.domains.minicode.grammar import CONDITIONS, OPERATIONS, Digits, Program
from trainer.domains.records import is_held_out

MIN_TESTS, MAX_TESTS, SHOWN = 8, 16, 6
_OPERATIONS = tuple(OPERATIONS)
_CONDITIONS = tuple(CONDITIONS)


def random_input(rng: np.random.Generator) -> Digits:
    """A list of 2 to 6 digits."""
    return tuple(rng.integers(0, 10, size=int(rng.integers(2, 7))).tolist())


@lru_cache(maxsize=1)
def _probes() -> tuple[Digits, ...]:
    rng = generator("minicode", "probes")
    return tuple(random_input(rng) for _ in range(48))


@lru_cache(maxsize=65536)
def held_out(program: Program) -> bool:
    """Whether a program's behaviour is reserved for evaluation."""
    return is_held_out(repr([program(x) for x in _probes()]))


def _branch(rng: np.random.Generator) -> tuple[str, ...]:
    length = 2 if rng.random() < 0.7 else 1
    return tuple(_OPERATIONS[i] for i in rng.integers(0, len(_OPERATIONS), size=length))


def random_program(rng: np.random.Generator, *, straight: float = 0.0) -> Program:
    """A random program; straight-line with probability ``straight``."""
    if rng.random() < straight:
        return Program(_branch(rng))
    return Program(_branch(rng), _CONDITIONS[rng.integers(len(_CONDITIONS))], _branch(rng))


@dataclass(frozen=True, slots=True)
class Problem:
    """A target and its tests. inputs, outputs: shape (d,), d in [8, 16]; the first ``SHOWN`` are shown in prompts."""

    target: Program
    inputs: tuple[Digits, ...]
    outputs: tuple[Digits, ...]

    @property
    def d(self) -> int:
        return len(self.inputs)

    def rewards(self, program: Program | None) -> np.ndarray:
        """The reward vector of an answer, shape (d,), each 0 or 1; zeros for ``None`` (outside the grammar)."""
        if program is None:
            return np.zeros(self.d, dtype=np.float32)
        return np.fromiter(
            (program(x) == y for x, y in zip(self.inputs, self.outputs, strict=True)), dtype=np.float32, count=self.d
        )


def random_problem(rng: np.random.Generator, *, heldout: bool, straight: float = 0.0) -> Problem:
    """A problem whose target is on the wanted side of the split and whose every part matters for its tests."""
    while True:
        target = random_program(rng, straight=straight)
        if held_out(target) is not heldout:
            continue
        problem = _with_tests(target, rng)
        if problem is not None:
            return problem


def _with_tests(target: Program, rng: np.random.Generator) -> Problem | None:
    d = int(rng.integers(MIN_TESTS, MAX_TESTS + 1))
    inputs = _balanced_inputs(target, d, rng)
    if inputs is None:
        return None
    problem = Problem(target, inputs, tuple(target(x) for x in inputs))
    if len(set(problem.outputs)) < d // 2 or sum(not y for y in problem.outputs) > 1:
        return None
    return problem if all(problem.rewards(part).min() == 0 for part in simplifications(target)) else None


def _balanced_inputs(target: Program, d: int, rng: np.random.Generator) -> tuple[Digits, ...] | None:
    """Distinct inputs, alternating between the branches so that shown and hidden tests cover both."""
    if target.condition is None:
        return tuple({random_input(rng): None for _ in range(4 * d)})[:d]
    sides: dict[bool, dict[Digits, None]] = {True: {}, False: {}}
    first = bool(rng.random() < 0.5)
    for _ in range(40 * d):
        x = random_input(rng)
        sides[target.takes_then(x)][x] = None
        if min(len(side) for side in sides.values()) >= d:
            break
    else:
        return None
    pools = {side: iter(xs) for side, xs in sides.items()}
    order = [first if i % 2 == 0 else not first for i in range(d)]
    head, tail = order[:SHOWN], order[SHOWN:]
    rng.shuffle(head)
    rng.shuffle(tail)
    return tuple(next(pools[side]) for side in head + tail)


def simplifications(program: Program) -> list[Program]:
    """Programs with one part less: one operation, or the condition and one branch."""
    then, condition, otherwise = program.then, program.condition, program.otherwise
    if condition is None:
        return [Program(then[:i] + then[i + 1 :]) for i in range(len(then))]
    parts = [Program(then), Program(otherwise)]
    parts += [Program(then[:i] + then[i + 1 :], condition, otherwise) for i in range(len(then))]
    parts += [Program(then, condition, otherwise[:i] + otherwise[i + 1 :]) for i in range(len(otherwise))]
    return parts


def _replace_operation(branch: tuple[str, ...], rng: np.random.Generator) -> tuple[str, ...]:
    choice = rng.random()
    operation = _OPERATIONS[rng.integers(len(_OPERATIONS))]
    if choice < 0.15 and len(branch) < 2:
        position = int(rng.integers(len(branch) + 1))
        return (*branch[:position], operation, *branch[position:])
    position = int(rng.integers(max(1, len(branch))))
    if choice < 0.3 and len(branch) == 2:
        return branch[:position] + branch[position + 1 :]
    return (*branch[:position], operation, *branch[position + 1 :])


def _edit_then(program: Program, rng: np.random.Generator) -> Program:
    return Program(_replace_operation(program.then, rng), program.condition, program.otherwise)


def _edit_otherwise(program: Program, rng: np.random.Generator) -> Program:
    if program.condition is None:
        return Program(program.then, _CONDITIONS[rng.integers(len(_CONDITIONS))], _branch(rng))
    return Program(program.then, program.condition, _replace_operation(program.otherwise, rng))


def _edit_condition(program: Program, rng: np.random.Generator) -> Program:
    if program.condition is None:
        return _edit_otherwise(program, rng)
    return Program(program.then, _CONDITIONS[rng.integers(len(_CONDITIONS))], program.otherwise)


def _drop_branch(program: Program, rng: np.random.Generator) -> Program:
    return Program(program.then if rng.random() < 0.5 or not program.otherwise else program.otherwise)


_EDITS: tuple[tuple[float, Callable[[Program, np.random.Generator], Program]], ...] = (
    (0.375, _edit_then),
    (0.375, _edit_otherwise),
    (0.15, _edit_condition),
    (0.1, _drop_branch),
)


def mutate(program: Program, rng: np.random.Generator, edits: int = 1) -> Program:
    """A different program of the training side, ``edits`` random edits away."""
    weights = [weight for weight, _ in _EDITS]
    while True:
        candidate = program
        for _ in range(edits):
            candidate = _EDITS[rng.choice(len(_EDITS), p=weights)][1](candidate, rng)
        if candidate != program and not held_out(candidate):
            return candidate
