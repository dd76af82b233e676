"""Evaluated candidates, and the record of the iteration that made them."""

from __future__ import annotations

import ast
import hashlib
import warnings
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from evolve.files import split_files
from sandbox.verdict import Status


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """What an evaluator found out about one candidate.

    components: names of the reward components, shape (d,).
    reward: the reward vector, shape (d,), each in [0, 1].
    statuses: verdict of each component, shape (d,).
    messages: per component, why it did not pass; empty where it did. Bounded text, may be shown in prompts.
    scalar: the task scalar in [0, 1] (mean of ``reward`` unless the task says otherwise).
    solved: every test passes, or the scalar reaches the task's target.
    metrics: raw values as the evaluator gave them (before scaling to [0, 1]).
    artifacts: named text from the evaluator (compiler output, tracebacks), bounded.
    infrastructure: why the candidate could not be judged at all; then the other fields say nothing about it.
    cpu_s, peak_mb: total CPU seconds and peak memory (MiB) of the judging.
    """

    components: tuple[str, ...]
    reward: tuple[float, ...]
    statuses: tuple[Status, ...]
    messages: tuple[str, ...]
    scalar: float
    solved: bool
    metrics: dict[str, float] = field(default_factory=dict)
    artifacts: dict[str, str] = field(default_factory=dict)
    infrastructure: str | None = None
    cpu_s: float = 0.0
    peak_mb: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """One evaluated candidate of a run.

    number: position in the run's append-only list, from 0 (0 is the seed program, iteration 0).
    iteration, index: the iteration that made it, from 1, and its place among that iteration's children, from 0.
    parents: numbers of the programs that it was made from.
    digest: see :func:`source_digest`.
    operator: how it was made: ``seed``, ``migrant``, or as :class:`evolve.request.Request` says.
    """

    number: int
    iteration: int
    index: int
    island: int
    parents: tuple[int, ...]
    source: str
    digest: str
    operator: str
    evaluation: Evaluation


def seed_program(source: str, evaluation: Evaluation) -> Program:
    """Program 0 of a run: the task's seed program as judged."""
    return Program(
        number=0,
        iteration=0,
        index=0,
        island=0,
        parents=(),
        source=source,
        digest=source_digest(source),
        operator="seed",
        evaluation=evaluation,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Model use of one iteration. ``lost_calls``: requests sent whose reply never arrived (crash, timeout)."""

    calls: int = 0
    lost_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls + other.calls,
            lost_calls=self.lost_calls + other.lost_calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            seconds=self.seconds + other.seconds,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """The stored answer of the model to one iteration's request.

    texts: one text per sample (``n`` of them; one for a chain model).
    finished: per text, whether the model ended by itself (false: cut off by the token limit).
    """

    texts: tuple[str, ...]
    finished: tuple[bool, ...]
    usage: Usage


@dataclass(frozen=True, kw_only=True, slots=True)
class Rejected:
    """An answer that became no program. reason: ``missing``, ``duplicate``, ``unparsable``, ``bad_edit``, ``known``."""

    index: int
    reason: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class IterationRecord:
    """One finished iteration, as it is stored.

    evaluations: candidates judged by the evaluator in this iteration (known digests are reused, and not counted).
    best_scalar: best task scalar of the run up to and including this iteration; ``solved`` likewise.
    error: why the iteration brought nothing (model request failed for good), else ``None``.
    elapsed_s: wall seconds that the run had been worked on by then. It decides nothing but a limit on wall time, and
        does not count in comparisons.
    """

    iteration: int
    island: int
    parents: tuple[int, ...]
    reply: Reply | None
    programs: tuple[Program, ...]
    rejected: tuple[Rejected, ...]
    evaluations: int
    best_scalar: float
    solved: bool
    error: str | None = None
    info: dict[str, Any] = field(default_factory=dict)
    elapsed_s: float = field(default=0.0, compare=False)


@lru_cache(maxsize=256)  # every answer is asked for twice, among its chain's and among the run's
def source_digest(source: str) -> str:
    """Digest of a Python program's syntax tree, so that layout and comments do not count.

    A source that does not parse is hashed as text with line ends and trailing spaces normalised. Of a program of
    several files each is taken by itself, with its path; only those with the suffix ``.py`` as Python.
    """
    files = split_files(source)
    if files is None:
        canonical = _canonical(source)
    else:
        canonical = repr([(path, _canonical(text, python=path.endswith(".py"))) for path, text in files.items()])
    return hashlib.blake2b(canonical.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _canonical(source: str, *, python: bool = True) -> str:
    """A text that programs share where they differ in nothing that counts."""
    tree = parse_python(source) if python else None
    try:
        if tree is not None:
            return ast.dump(tree, annotate_fields=False)
    except RecursionError:
        pass
    return "\n".join(line.rstrip() for line in source.strip().splitlines())


@lru_cache(maxsize=8)  # an answer is parsed for its digest, its validity and its place in the archive
def parse_python(source: str) -> ast.Module | None:
    """The syntax tree of a source, ``None`` where it does not parse. Never raises, never warns. Do not change it."""
    try:
        with warnings.catch_warnings(action="ignore"):  # a model's odd escapes are its own affair
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
