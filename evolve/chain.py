"""The chain format: how m answers are asked for in one generation, and how they are read back.

Trainer and search both use this module, so what was trained is what is served. A reply is free reasoning followed by
m answers, either tagged (``<answer>…</answer>`` by default) or in Markdown fences. Reading it:

1. Reasoning is stripped: everything up to the last ``</think>``; an unclosed ``<think>`` leaves no answer.
2. Tagged answers are taken where there are any, else fenced blocks, else (only when one answer was asked for and the
   text parses as Python by itself) the whole text. SEARCH/REPLACE blocks stay together: an answer that has any keeps
   all of its text, and where one answer was asked for, an untagged reply with such blocks is that answer.
3. An answer cut off by the token limit is not an answer.
4. Answers equal by syntax tree to an earlier one are dropped and counted; answers beyond m are ignored and counted.
5. Answers that were asked for and did not come are counted as missing (in training: zero reward vectors).
6. Answers of several files keep all of their text, fences and the lines around them included, for those name the files;
   an untagged reply with any code is one answer.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from evolve.edits import has_diff_blocks
from evolve.program import parse_python, source_digest

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n`]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)


class ChainFormat(BaseModel):
    """How the answers of one generation are marked.

    m: answers asked for in one generation (1: a single-answer model).
    open, close: the tags around one answer.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    m: Annotated[int, Field(ge=1, le=64)] = 1
    open: Annotated[str, Field(min_length=1)] = "<answer>"
    close: Annotated[str, Field(min_length=1)] = "</answer>"


@dataclass(frozen=True, slots=True)
class Answer:
    """One distinct answer. ``start``/``end``: its span in the reply, tags included, in characters (for credit)."""

    index: int
    text: str
    start: int
    end: int
    digest: str


@dataclass(frozen=True, slots=True)
class ParsedChain:
    """What a reply contained. ``len(answers) + duplicates + missing == m``; ``surplus`` were past m."""

    answers: tuple[Answer, ...]
    duplicates: int
    missing: int
    surplus: int


def parse_chain(text: str, chain: ChainFormat, *, m: int | None = None, files: bool = False) -> ParsedChain:
    """Read the answers of one reply; ``m`` overrides the number asked for (default ``chain.m``).

    files: whether an answer may be for several files. Never raises: whatever a model wrote gives some result, maybe an
    empty one.
    """
    wanted = chain.m if m is None else m
    begin = _reasoning_end(text)
    if files:
        found = _tagged(text, begin, chain, str) or _untagged(text, begin)
    else:
        found = _tagged(text, begin, chain, _unfence) or _edits(text, begin, wanted) or _fenced(text, begin)
        found = found or _bare(text, begin, wanted)
    answers: list[Answer] = []
    seen: set[str] = set()
    duplicates = 0
    for index, (body, start, end) in enumerate(found[:wanted]):
        digest = source_digest(body)
        if digest in seen:
            duplicates += 1
            continue
        seen.add(digest)
        answers.append(Answer(index, body, start, end, digest))
    return ParsedChain(
        answers=tuple(answers),
        duplicates=duplicates,
        missing=max(0, wanted - len(found)),
        surplus=max(0, len(found) - wanted),
    )


def _reasoning_end(text: str) -> int:
    closed = text.rfind("</think>")
    if closed >= 0:
        return closed + len("</think>")
    return len(text) if "<think>" in text else 0


def _tagged(text: str, begin: int, chain: ChainFormat, body_of: Callable[[str], str]) -> list[tuple[str, int, int]]:
    found = []
    position = begin
    while (start := text.find(chain.open, position)) >= 0:
        inner = start + len(chain.open)
        end = text.find(chain.close, inner)
        if end < 0:
            break
        reopened = text.rfind(chain.open, inner, end)
        if reopened >= 0:  # an unclosed answer before this one: only the inner pair is an answer
            start, inner = reopened, reopened + len(chain.open)
        found.append((body_of(text[inner:end]), start, end + len(chain.close)))
        position = end + len(chain.close)
    return [item for item in found if item[0].strip()]


def _untagged(text: str, begin: int) -> list[tuple[str, int, int]]:
    """All that follows the reasoning as one answer, where there is any code in it."""
    body = text[begin:]
    return [(body, begin, len(text))] if has_diff_blocks(body) or _FENCE.search(body) else []


def _edits(text: str, begin: int, wanted: int) -> list[tuple[str, int, int]]:
    return [(text[begin:], begin, len(text))] if wanted == 1 and has_diff_blocks(text[begin:]) else []


def _fenced(text: str, begin: int) -> list[tuple[str, int, int]]:
    matches = _FENCE.finditer(text, begin)
    return [(m.group(2), m.start(), m.end()) for m in matches if m.group(2).strip()]


def _bare(text: str, begin: int, wanted: int) -> list[tuple[str, int, int]]:
    body = text[begin:]
    if wanted != 1 or not body.strip():
        return []
    tree = parse_python(body.strip("\n"))
    if tree is None:
        return []
    is_program = any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in tree.body)
    return [(body.strip("\n") + "\n", begin, len(text))] if is_program else []


def _unfence(body: str) -> str:
    """The content of a fence inside a tag, or the body without the line breaks next to the tags."""
    fence = _FENCE.search(body)
    if fence and not has_diff_blocks(body):
        return fence.group(2)
    return body.removeprefix("\r\n").removeprefix("\n").rstrip() + "\n"
