"""Programs and other texts as prompts show them: bounded, and inside fences that they cannot close.

Of a program of several files those with EVOLVE-BLOCK markers come first. A file is shown whole or, where it does not
fit in the room that is left, named with its size; only where not one of them fits, the first is cut in its middle.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from evolve.file_edits import read_only
from evolve.files import header, language_of, split_files

_LEFT_OUT = "\n… {} characters left out …\n"
_FRAME_CHARS = 16


def clip(text: str, limit: int) -> str:
    """``text`` within about ``limit`` characters: its first two thirds and its end, and how much is left out."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return text[:head] + _LEFT_OUT.format(len(text) - head - tail) + text[len(text) - tail :]


def fence(text: str, language: str) -> str:
    """``text`` in a Markdown fence longer than any run of backquotes in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    body = text.removesuffix("\n")
    return f"{ticks}{language}\n{body}\n{ticks}"


def fenced_program(source: str, language: str, limit: int, *, beside: str | None = None) -> str:
    """A program in a fence, or each of its files under a line with its path.

    limit: most characters of code, about. beside: a program that is shown already; files equal to its are only named.
    """
    files = split_files(source)
    if files is None:
        return fence(clip(source, limit), language)
    shown = (split_files(beside) if beside else None) or {}
    other = {path: text for path, text in files.items() if shown.get(path) != text}
    same = [path for path in files if path not in other]
    kept = _fitting(other, limit)
    parts = [f"{path}\n{fence(text, language_of(path) or '')}" for path, text in kept.items()]
    parts += [
        _not_shown(other, kept, limit),
        f"As in the current program: {clip(', '.join(same), limit)}" if same else "",
    ]
    return "\n".join(part for part in parts if part)


def bare_program(source: str, limit: int) -> str:
    """A program for a place that has a fence already: the files follow each other, each after a line with its path."""
    files = split_files(source)
    if files is None:
        return clip(source, limit)
    kept = _fitting(files, limit)
    parts = [header(path, files[path]) + "\n" + text.removesuffix("\n") for path, text in kept.items()]
    return "\n".join(part for part in (*parts, _not_shown(files, kept, limit)) if part)


def _fitting(files: Mapping[str, str], limit: int) -> dict[str, str]:
    """The files that are shown, in order of path."""
    fixed = read_only(dict(files))
    kept: dict[str, str] = {}
    room = limit
    for path in sorted(files, key=lambda path: (path in fixed, path)):
        size = len(path) + len(files[path]) + _FRAME_CHARS
        if size <= room:
            kept[path] = files[path]
            room -= size
    if files and not kept:
        first = min(files, key=lambda path: (path in fixed, path))
        kept[first] = clip(files[first], limit)
    return dict(sorted(kept.items()))


def _not_shown(files: Mapping[str, str], kept: Mapping[str, str], limit: int) -> str:
    sizes = [f"{path} ({len(text):,} characters)" for path, text in files.items() if path not in kept]
    return f"Not shown: {clip(', '.join(sizes), limit)}" if sizes else ""
