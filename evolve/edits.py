"""From an answer to a new program: a whole program, or SEARCH/REPLACE blocks against the parent.

Where the parent has EVOLVE-BLOCK-START/END markers (behind any comment sign), only what is between them may change:
an edit that touches anything else is rejected, and a whole program is fitted into the parent's fixed parts. Markers
that are nested or unmatched protect nothing. An answer with SEARCH/REPLACE lines is read as blocks, any other as a
whole program, whichever was asked for: models mix them up. Untouched lines keep their bytes, and new lines get the
parent's line ends.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from evolve.loose_matching import loose_matches
from evolve.program import parse_python

_MARKER = re.compile(r"^\W*EVOLVE-BLOCK-(START|END)\b|# EVOLVE-BLOCK-(START|END)\b")
_DIFF_LINE = re.compile(r"^[ \t]*(?:(<{7}) ?SEARCH|(={7})|(>{7}) ?REPLACE)[ \t]*$")
_SEARCH = re.compile(r"^[ \t]*<{7} ?SEARCH[ \t]*\r?$", re.MULTILINE)
_SHOWN_CHARS = 120


class Outcome(StrEnum):
    """How an edit ended; every name but the first two means that there is no new program.

    The last three are of programs of several files (:mod:`evolve.file_edits`).
    """

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    NO_CODE = "no_code"
    NO_BLOCKS = "no_blocks"
    NO_PARENT = "no_parent"
    MALFORMED = "malformed"
    EMPTY_SEARCH = "empty_search"
    NOT_FOUND = "search_not_found"
    AMBIGUOUS = "ambiguous"
    OUTSIDE_BLOCK = "outside_block"
    MARKERS_CHANGED = "markers_changed"
    TOO_LONG = "too_long"
    NO_FILE = "no_file"
    UNKNOWN_FILE = "unknown_file"
    BAD_FILE = "bad_file"


@dataclass(frozen=True, kw_only=True, slots=True)
class EditResult:
    """source: the new program, ``None`` where there is none. detail: why, or what had to be forgiven.

    fuzzy: whether some SEARCH text matched only up to white space.
    """

    outcome: Outcome
    source: str | None = None
    detail: str = ""
    fuzzy: bool = False


class Refused(Exception):  # noqa: N818 (an outcome, not a fault)
    """Ends the reading of an answer that gives no program."""

    def __init__(self, outcome: Outcome, detail: str) -> None:
        super().__init__(detail)
        self.outcome, self.detail = outcome, detail


def has_diff_blocks(text: str) -> bool:
    """Whether a text holds a line that opens a SEARCH/REPLACE block."""
    return _SEARCH.search(text) is not None


def closes_block(line: str) -> bool:
    """Whether a line ends a SEARCH/REPLACE block."""
    found = _DIFF_LINE.match(_bare(line))
    return found is not None and found[3] is not None


def has_markers(source: str) -> bool:
    """Whether a program has EVOLVE-BLOCK markers that protect the rest of it."""
    return _regions(_lines(source)) is not None


def apply_edit(answer: str, *, parent: str | None, edit: str = "whole", max_chars: int | None = None) -> EditResult:
    """The program that ``answer`` makes of ``parent``; never raises, whatever a model wrote.

    parent: the program to edit, or the one whose fixed parts frame an answer from scratch; ``None`` without any.
    edit: what was asked for, ``whole`` or ``diff``. max_chars: of the new program; ``None``: any length.
    """
    try:
        if not answer.strip():
            raise Refused(Outcome.NO_CODE, "the answer is empty")
        if has_diff_blocks(answer):
            if parent is None:
                raise Refused(Outcome.NO_PARENT, "SEARCH/REPLACE blocks, but there is no program to edit")
            source, fuzzy = _apply_blocks(answer, parent)
        else:
            if edit == "diff" and not _is_program(answer):
                raise Refused(Outcome.NO_BLOCKS, "neither a SEARCH/REPLACE block nor a program")
            source, fuzzy = _fit(answer, parent), False
        if max_chars is not None and len(source) > max_chars:
            raise Refused(Outcome.TOO_LONG, f"{len(source):,} characters, at most {max_chars:,} are allowed")
    except Refused as refused:
        return EditResult(outcome=refused.outcome, detail=refused.detail)
    if source == parent:
        return EditResult(outcome=Outcome.UNCHANGED, source=source, fuzzy=fuzzy)
    return EditResult(outcome=Outcome.APPLIED, source=source, fuzzy=fuzzy)


def _is_program(answer: str) -> bool:
    tree = parse_python(answer)
    return tree is not None and any(not isinstance(node, ast.Expr) for node in tree.body)


# Lines. A line here keeps its line end; _bare takes it off.


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _bare(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _shown(lines: list[str]) -> str:
    text = " / ".join(line.strip() for line in lines if line.strip())
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"


def _line_end(lines: list[str]) -> str:
    return "\r\n" if lines and lines[0].endswith("\r\n") else "\n"


@dataclass(frozen=True, slots=True)
class _Regions:
    """fixed: lines outside of the blocks, markers included; one part more than there are blocks."""

    fixed: list[list[str]]
    blocks: list[list[str]]


def _regions(lines: list[str]) -> _Regions | None:
    """The parts of a program, ``None`` without (well-formed) markers."""
    fixed: list[list[str]] = [[]]
    blocks: list[list[str]] = []
    inside = False
    for line in lines:
        found = _MARKER.search(_bare(line))
        kind = (found[1] or found[2]) if found else None
        if kind is not None and (kind == "START") == inside:
            return None
        if kind == "END":
            inside = False
            fixed.append([])
        (blocks if inside else fixed)[-1].append(line)
        if kind == "START":
            inside = True
            blocks.append([])
    return _Regions(fixed, blocks) if blocks and not inside else None


# Whole programs


def _fit(answer: str, parent: str | None) -> str:
    """A whole program, its blocks put into the parent's fixed parts."""
    answer = answer.replace("\r\n", "\n")
    old_lines = _lines(parent or "")
    old = _regions(old_lines)
    if old is None:
        return answer if answer.endswith("\n") else answer + "\n"
    end = _line_end(old_lines)
    lines = [_bare(line) + end for line in _lines(answer)]
    new = _regions(lines)
    if new is None and len(old.blocks) == 1:
        blocks = [_without_fixed_parts(lines, old)]
    elif new is not None and len(new.blocks) == len(old.blocks):
        blocks = new.blocks
    else:
        count = len(old.blocks)
        raise Refused(Outcome.MARKERS_CHANGED, f"the answer must keep the program's {count} EVOLVE-BLOCK sections")
    parts = [old.fixed[0]]
    for block, fixed in zip(blocks, old.fixed[1:], strict=True):
        parts += [block, fixed]
    return "".join(line for part in parts for line in part)


def _without_fixed_parts(lines: list[str], old: _Regions) -> list[str]:
    """An answer without markers, less the parent's fixed lines that it repeats before and after the block."""
    before = _trimmed([line.rstrip() for line in old.fixed[0][:-1]])
    after = _trimmed([line.rstrip() for line in old.fixed[1][1:]])
    texts = [line.rstrip() for line in lines]
    full = [i for i, text in enumerate(texts) if text]
    start, stop = full[0], full[-1] + 1
    if before and texts[start : start + len(before)] == before:
        start += len(before)
    if after and stop - len(after) >= start and texts[stop - len(after) : stop] == after:
        stop -= len(after)
    return lines[start:stop]


def _trimmed(texts: list[str]) -> list[str]:
    """``texts`` without blank lines at both ends."""
    full = [i for i, text in enumerate(texts) if text.strip()]
    return texts[full[0] : full[-1] + 1] if full else []


# SEARCH/REPLACE


def _read_blocks(answer: str) -> list[tuple[list[str], list[str]]]:
    """Pairs of SEARCH and REPLACE lines (without line ends), in order."""
    blocks: list[tuple[list[str], list[str]]] = []
    part: list[str] | None = None
    search: list[str] | None = None
    for line in map(_bare, _lines(answer)):
        found = _DIFF_LINE.match(line)
        if found is None:
            if part is not None:
                part.append(line)
        elif found[1] and part is None:
            part = []
        elif found[2] and part is not None and search is None:
            search, part = part, []
        elif found[3] and part is not None and search is not None:
            blocks.append((search, part))
            search = part = None
        elif not (found[2] and part is None):  # a line of seven equals signs in the text around is no marker
            raise Refused(Outcome.MALFORMED, f"{line.strip()!r} out of place in block {len(blocks) + 1}")
    if part is not None:
        raise Refused(Outcome.MALFORMED, f"block {len(blocks) + 1} is not closed")
    return blocks


def _apply_blocks(answer: str, parent: str) -> tuple[str, bool]:
    lines = _lines(parent)
    regions = _regions(lines)
    end = _line_end(lines)
    fuzzy = False
    for number, (search, replace) in enumerate(_read_blocks(answer), 1):
        if not any(line.strip() for line in search):
            raise Refused(Outcome.EMPTY_SEARCH, f"block {number} has an empty SEARCH part")
        lines, loosely = _apply_block(lines, search, replace, regions, end, number)
        fuzzy = fuzzy or loosely
    return "".join(lines), fuzzy


def _apply_block(
    lines: list[str], search: list[str], replace: list[str], regions: _Regions | None, end: str, number: int
) -> tuple[list[str], bool]:
    """The lines after one block, and whether white space had to be forgiven."""
    touched_fixed = False
    for find in (_exact, _without_trailing, _reindented, loose_matches):
        results = [_spliced(lines, start, size, new, end) for start, size, new in find(lines, search, replace)]
        allowed = [result for result in results if regions is None or _keeps_fixed(result, regions)]
        if len(allowed) == 1:
            return allowed[0], find is not _exact
        if len(allowed) > 1:
            raise Refused(
                Outcome.AMBIGUOUS, f"block {number} fits {len(allowed)} places; give more lines: {_shown(search)}"
            )
        touched_fixed = touched_fixed or bool(results)
    if touched_fixed:
        raise Refused(Outcome.OUTSIDE_BLOCK, f"block {number} changes lines outside of EVOLVE-BLOCK: {_shown(search)}")
    raise Refused(Outcome.NOT_FOUND, f"block {number} is not in the program: {_shown(search)}")


def _keeps_fixed(lines: list[str], old: _Regions) -> bool:
    new = _regions(lines)
    return new is not None and new.fixed == old.fixed


def _spliced(lines: list[str], start: int, size: int, new: list[str], end: str) -> list[str]:
    """``lines`` with ``size`` of them replaced; lines that stay the same keep their bytes."""
    old = lines[start : start + size]
    fresh = [line + end for line in new]
    if start + size == len(lines) and fresh and not old[-1].endswith("\n"):
        fresh[-1] = _bare(fresh[-1])
    kept = 0
    while kept < min(len(old), len(new)) and _bare(old[kept]) == new[kept]:
        fresh[kept] = old[kept]
        kept += 1
    tail = 0
    while tail < min(len(old), len(new)) - kept and _bare(old[-1 - tail]) == new[-1 - tail]:
        fresh[-1 - tail] = old[-1 - tail]
        tail += 1
    return lines[:start] + fresh + lines[start + size :]


Match = tuple[int, int, list[str]]
"""First line, number of lines, and the lines that take their place."""


def _exact(lines: list[str], search: list[str], replace: list[str]) -> Iterator[Match]:
    return _matches(lines, search, replace, _bare, lambda text: text)


def _without_trailing(lines: list[str], search: list[str], replace: list[str]) -> Iterator[Match]:
    """Blank lines around the block's parts and white space at line ends do not count."""
    return _matches(lines, _trimmed(search), _trimmed(replace), lambda line: line.rstrip(), str.rstrip)


def _matches(
    lines: list[str],
    search: list[str],
    replace: list[str],
    of_line: Callable[[str], str],
    of_search: Callable[[str], str],
) -> Iterator[Match]:
    texts, wanted = [of_line(line) for line in lines], [of_search(line) for line in search]
    for start in range(len(texts) - len(wanted) + 1):
        if texts[start] == wanted[0] and texts[start : start + len(wanted)] == wanted:
            yield start, len(wanted), replace


def _reindented(lines: list[str], search: list[str], replace: list[str]) -> Iterator[Match]:
    """The whole block indented deeper or less deep than in the program."""
    search, replace = _trimmed(search), _trimmed(replace)
    texts, wanted = [line.strip() for line in lines], [line.strip() for line in search]
    for start in range(len(texts) - len(wanted) + 1):
        if texts[start] != wanted[0] or texts[start : start + len(wanted)] != wanted:
            continue
        moved = _move(lines[start : start + len(wanted)], search, replace)
        if moved is not None:
            yield start, len(wanted), moved


def _move(found: list[str], search: list[str], replace: list[str]) -> list[str] | None:
    """``replace`` moved as ``search`` must be to lie on ``found``; ``None`` if no one shift does it."""
    kept = {line.strip(): line.rstrip() for line in found if line.strip()}
    repeated = [line.rstrip() for line in replace if line.strip() in kept]
    if repeated and all(line == kept[line.strip()] for line in repeated):  # REPLACE is indented as the program already
        return replace
    there, here = _indent(found[0]), _indent(search[0])
    if there.endswith(here):
        add, drop = there[: len(there) - len(here)], ""
    elif here.endswith(there):
        add, drop = "", here[: len(here) - len(there)]
    else:
        return None
    shifted = [_shift(line, add, drop) for line in search]
    moved = [_shift(line, add, drop) for line in replace]
    fits = all(new is not None and new.rstrip() == old.rstrip() for new, old in zip(shifted, found, strict=True))
    lines = [line for line in moved if line is not None]
    return lines if fits and len(lines) == len(moved) else None


def _shift(line: str, add: str, drop: str) -> str | None:
    if not line.strip():
        return ""
    return add + line.removeprefix(drop) if line.startswith(drop) else None


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]
