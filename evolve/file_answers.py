"""Which parts of an answer are meant for which file.

A part is a fenced code block (a file from its first line to its last) or a SEARCH/REPLACE block, fenced or not. Its
file is named in the line before it or after the ticks of its fence. A path that the program has counts before anything
else that looks like a path, and a fence's own words before the line above. SEARCH/REPLACE blocks that name no file of
their own belong to that of the block before. A code block that names none, where others do, explains something.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from evolve.edits import Outcome, Refused, closes_block, has_diff_blocks
from evolve.files import header_path

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})([^`]*)")
_LABEL = re.compile(r"^(?:\d+[.)]\s+)?(?:(?:file ?name|file|path)[\s:=]+)?", re.IGNORECASE)
_LOOKS_LIKE_A_PATH = re.compile(r"(?=.*/|.*\.[A-Za-z])[\w.+@~\\/-]*\w")
_ORNAMENTS = re.compile(r"[`*'\"]")
_MOST_NESTED = 16  # each fence is searched for its end: what a model repeats without one must not cost hours
_AROUND = " \t\r#:;,-=<>()[]{}"


@dataclass(frozen=True, slots=True)
class Part:
    """path: of the file that it is for, ``None`` where nothing says so. blocks: whether it is SEARCH/REPLACE."""

    path: str | None
    text: str
    blocks: bool


def read_parts(answer: str, known: Collection[str]) -> list[Part]:
    """The parts of an answer in order. known: the program's paths.

    Raises :class:`evolve.edits.Refused` for a fence that is not closed, or is within too many others.
    """
    reader = _Reader(answer.replace("\r\n", "\n").split("\n"), known)
    return list(reader.parts())


class _Reader:
    def __init__(self, lines: list[str], known: Collection[str]) -> None:
        self._lines, self._known = lines, known
        self._opens = list(map(has_diff_blocks, lines))  # a SEARCH/REPLACE block
        self._closes = list(map(closes_block, lines))
        self._near = ""  # the last line of the text around that is not blank, or a fence's words
        self._path: str | None = None  # of the block before
        self._ends: list[int] = []  # of fences around blocks

    def parts(self) -> Iterator[Part]:
        at = 0
        while at < len(self._lines):
            line = self._lines[at]
            fence = _FENCE.fullmatch(line)
            if at in self._ends:
                at += 1
            elif fence is not None:
                end = self._end_of_fence(at, fence[1])
                if end is None:
                    return
                if any(self._opens[at + 1 : end]):
                    self._enter(at, end)
                    self._near = self._path_of(self._near, fence[2]) or ""
                    at += 1
                    continue
                yield self._whole(fence[2], self._lines[at + 1 : end])
                at = end + 1
            elif self._opens[at]:
                end = self._end_of_block(at)
                self._path = self._path_of(self._near) or self._path
                yield Part(self._path, "\n".join(self._lines[at:end]) + "\n", blocks=True)
                self._near, at = "", end
            else:
                self._near = line if line.strip() else self._near
                at += 1

    def _enter(self, at: int, end: int) -> None:
        self._ends = [*(each for each in self._ends if each > at), end]
        if len(self._ends) > _MOST_NESTED:
            raise Refused(Outcome.MALFORMED, f"the code block in line {at + 1} of the answer is within too many others")

    def _whole(self, words: str, body: list[str]) -> Part:
        path = self._path_of(self._near, words)
        if path is None and body:  # a comment with the name, on the first line of the file itself
            path = next((name for name in _names(body[0]) if name in self._known), None)
        self._near, self._path = "", None
        return Part(path, "".join(f"{line}\n" for line in body), blocks=False)

    def _end_of_block(self, at: int) -> int:
        """The line after a SEARCH/REPLACE block; the end of the answer where it is not closed."""
        ends = (i + 1 for i in range(at + 1, len(self._lines)) if self._closes[i])
        return next(ends, len(self._lines))

    def _end_of_fence(self, at: int, ticks: str) -> int | None:
        """The line that closes a fence, ``None`` where it is the answer's last line that is not blank."""
        i = at + 1
        while i < len(self._lines):
            if self._opens[i]:
                i = self._end_of_block(i)
            elif self._lines[i].strip() == ticks:
                return i
            else:
                i += 1
        if any(line.strip() for line in self._lines[at + 1 :]):
            raise Refused(Outcome.MALFORMED, f"the code block in line {at + 1} of the answer is not closed")
        return None

    def _path_of(self, near: str, words: str = "") -> str | None:
        """The path in a fence's words or in the line before; the program's own come first."""
        _, _, rest = words.strip().partition(" ")  # the first word of a fence is its language
        names = [*_names(words), *_names(rest), *_names(re.split(r"[\s:=]", words.strip())[-1]), *_names(near)]
        ours = next((name for name in names if name in self._known), None)
        return ours or next((name for name in names if _LOOKS_LIKE_A_PATH.fullmatch(name)), None)


def _names(line: str) -> list[str]:
    """What a line may name: all of it, also without ornaments, and less a number or a word such as ``File:`` before."""
    if (path := header_path(line.strip())) is not None:
        return [path]
    text = _ORNAMENTS.sub("", line).strip(_AROUND)
    texts = [line.strip(), text, _LABEL.sub("", text).strip(_AROUND)]
    return [text.removeprefix("./") for text in texts if text]
