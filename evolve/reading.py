"""From a model's reply to the candidates that are worth judging."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from evolve.chain import Answer, ChainFormat, parse_chain
from evolve.edits import apply_edit
from evolve.file_edits import FileRules, apply_file_edits, file_rules
from evolve.files import split_files
from evolve.program import Rejected, Reply, parse_python, source_digest
from evolve.request import Request

_CUT = "cut off by the token limit"
_ABSENT = "no program in its place of the reply"
_EQUAL = "equal to another of this reply"


@dataclass(frozen=True, kw_only=True, slots=True)
class Child:
    """A candidate to judge. index: its place among the iteration's n * m answers. digest: of ``source``."""

    index: int
    source: str
    digest: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidates:
    """What a reply is worth. ``rejected`` in order of index. cut: completions that ended at the token limit."""

    children: tuple[Child, ...]
    rejected: tuple[Rejected, ...]
    cut: int = 0


def read_reply(
    request: Request,
    reply: Reply,
    chain: ChainFormat,
    *,
    seed_source: str,
    language: str,
    known: Callable[[str], int | None],
    max_chars: int | None = None,
    new_files: bool = False,
) -> Candidates:
    """Every answer of a reply, as a child or with the reason why it is none.

    seed_source: the program whose fixed parts (outside EVOLVE-BLOCK markers) frame an answer from scratch.
    language: only ``python`` sources are checked for syntax.
    known: the number of the program with a digest, ``None`` for a new one.
    max_chars: of a program. new_files: whether answers may add files to a program that has several.
    """
    rules = file_rules(seed_source, new_files=new_files)
    edits = _Edits(request, seed_source, language, max_chars, rules)
    children: list[Child] = []
    rejected: list[Rejected] = []
    seen: set[str] = set()
    for item in _answers(request, reply, chain, files=rules is not None):
        outcome = item if isinstance(item, Rejected) else edits.child(*item)
        if isinstance(outcome, Rejected):
            rejected.append(outcome)
        elif outcome.digest in seen:  # comes before ``known``, so that the reason does not depend on when this is read
            rejected.append(Rejected(index=outcome.index, reason="duplicate", detail=_EQUAL))
        elif (number := known(outcome.digest)) is not None:
            rejected.append(known_as(number, outcome.index))
        else:
            children.append(outcome)
        if isinstance(outcome, Child):
            seen.add(outcome.digest)
    cut = sum(not finished for finished in reply.finished)
    return Candidates(children=tuple(children), rejected=tuple(rejected), cut=cut)


def known_as(number: int, index: int) -> Rejected:
    """The rejection of an answer that is program ``number`` already."""
    return Rejected(index=index, reason="known", detail=f"program {number}")


def _answers(
    request: Request, reply: Reply, chain: ChainFormat, *, files: bool
) -> Iterator[tuple[int, str] | Rejected]:
    """The n * m places of a reply in order: an answer's text with its index, or why there is none."""
    for sample in range(request.n):
        first = sample * request.m
        if sample >= len(reply.texts):
            for place in range(request.m):
                yield Rejected(index=first + place, reason="missing", detail="the server sent fewer completions")
            continue
        text, finished = reply.texts[sample], reply.finished[sample]
        parsed = parse_chain(text, chain, m=request.m, files=files)
        closing = (chain.close,) if files else (chain.close, "```", "~~~")
        by_place = {answer.index: answer for answer in parsed.answers}
        for place in range(request.m):
            answer = by_place.get(place)
            if place >= request.m - parsed.missing or (answer and _is_cut(answer, text, finished, closing)):
                yield Rejected(index=first + place, reason="missing", detail=_ABSENT if finished else _CUT)
            elif answer is None:
                yield Rejected(index=first + place, reason="duplicate", detail=_EQUAL)
            else:
                yield first + place, answer.text


def _is_cut(answer: Answer, text: str, finished: bool, closing: tuple[str, ...]) -> bool:
    """Whether the token limit may have cut this answer: it runs to the end of the text and nothing closes it."""
    if finished or answer.end < len(text):
        return False
    return not text.rstrip().endswith(closing)


@dataclass(frozen=True, slots=True)
class _Edits:
    """What the answers of one request are applied to, and how."""

    request: Request
    seed_source: str
    language: str
    max_chars: int | None
    rules: FileRules | None

    def child(self, index: int, answer: str) -> Child | Rejected:
        request, rules, limit = self.request, self.rules, self.max_chars
        base = request.parent_source if request.parent_source is not None else self.seed_source
        if rules is None:
            edited = apply_edit(answer, parent=base, edit=request.edit, max_chars=limit)
        else:
            edited = apply_file_edits(answer, parent=base, rules=rules, edit=request.edit, max_chars=limit)
        if edited.source is None:
            return Rejected(index=index, reason="bad_edit", detail=f"{edited.outcome}: {edited.detail}")
        problem = self._problem(edited.source) if rules is None else _problem_of_files(edited.source, base)
        if problem:
            return Rejected(index=index, reason="unparsable", detail=problem)
        return Child(index=index, source=edited.source, digest=source_digest(edited.source))

    def _problem(self, source: str) -> str:
        return _syntax_problem(source) if self.language == "python" else ""


def _problem_of_files(source: str, base: str) -> str:
    """Why a Python file that differs from the parent's does not parse; empty where all do."""
    old = split_files(base) or {}
    for path, text in (split_files(source) or {}).items():
        if path.endswith(".py") and text != old.get(path) and (problem := _syntax_problem(text)):
            return f"{path}: {problem}"
    return ""


def _syntax_problem(source: str) -> str:
    """Why a Python source does not parse; empty where it does."""
    if parse_python(source) is not None:
        return ""
    try:
        with warnings.catch_warnings(action="ignore"):  # invalid escapes and the like are no errors
            ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"[:200]
    return ""
