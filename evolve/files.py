"""A program of several files as one text, and back: the form in which it is stored, compared and evolved.

1. The files follow each other in order of path. Each begins with a line such as ``==> lib/helper.py (12 lines) <==``;
   the number of lines says where it ends, so that it may hold anything, even lines that look like this one.
2. Where a file's last line has no line end, its first line says so: ``(12 lines, no line end)``.
3. Equal programs have equal texts: what :func:`join_files` would not have written is no program of several files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

MAX_FILES = 64
MAX_PATH_BYTES = 200  # of UTF-8: file systems allow names of 255, and a jail without its files says nothing of them
MAX_CHARS = 1_000_000
RESERVED = "evaluator.py"

_OPEN = "==> "
_HEADER = re.compile(r"==> (.+) \((\d+) lines?(, no line end)?\) <==")
_PART = re.compile(r"\w[\w.+@-]*(?: [\w.+@-]+)*")
_LANGUAGES = {
    ".py": "python",
    ".rs": "rust",
    ".js": "javascript",
    ".ts": "typescript",
    ".go": "go",
    ".c": "c",
    ".cpp": "cpp",
    ".java": "java",
    ".r": "r",
    ".sql": "sql",
}


def join_files(files: Mapping[str, str]) -> str:
    """The text of a program of several files, given by relative path. Raises ``ValueError`` as :func:`check_files`."""
    check_files(files)
    return "".join(f"{header(path, text)}\n{text}{_missing_end(text)}" for path, text in sorted(files.items()))


def split_files(source: str) -> dict[str, str] | None:
    """The files of a program by path, in order of path; ``None`` where the text is no program of several files."""
    if not source.startswith(_OPEN):
        return None
    lines = source.split("\n")
    if lines.pop():
        return None
    files: dict[str, str] = {}
    at = 0
    while at < len(lines):
        found = _HEADER.fullmatch(lines[at])
        if found is None or len(found[2]) > len(str(len(lines))):
            return None
        size = int(found[2])
        text = "".join(f"{line}\n" for line in lines[at + 1 : at + 1 + size])
        files[found[1]] = text.removesuffix("\n") if found[3] else text
        at += 1 + size
    try:
        return files if join_files(files) == source else None
    except ValueError:
        return None


def header(path: str, text: str) -> str:
    """The line that comes before a file."""
    count = text.count("\n") + len(_missing_end(text))
    return f"{_OPEN}{path} ({count} {'line' if count == 1 else 'lines'}{', no line end' * len(_missing_end(text))}) <=="


def header_path(line: str) -> str | None:
    """The path in a line that looks as if it came before a file."""
    found = _HEADER.fullmatch(line)
    return found[1] if found else None


def _missing_end(text: str) -> str:
    return "\n" if text and not text.endswith("\n") else ""


def check_files(files: Mapping[str, str]) -> None:
    """Raise ``ValueError``, naming the path and the fix, for what cannot be a program."""
    if not files:
        raise ValueError("a program needs at least one file")
    if len(files) > MAX_FILES:
        raise ValueError(f"a program of {len(files)} files; at most {MAX_FILES} are allowed")
    chars = sum(map(len, files.values()))
    if chars > MAX_CHARS:
        raise ValueError(f"a program of {chars:,} characters in its files; at most {MAX_CHARS:,} are allowed")
    for path in files:
        check_path(path)
    folders = {str(folder): path for path in files for folder in PurePosixPath(path).parents}
    for path in files:
        if path in folders:
            raise ValueError(f"{path!r} cannot be a file and the folder of {folders[path]!r}: rename one")


def check_path(path: str) -> None:
    """Raise ``ValueError`` for a path that no file of a program can have."""
    size = len(path.encode("utf-8", "surrogatepass"))
    if size > MAX_PATH_BYTES or not all(_PART.fullmatch(part) for part in path.split("/")):
        raise ValueError(
            f"file name {path[:MAX_PATH_BYTES]!r} must be a relative path of at most {MAX_PATH_BYTES} bytes, of names "
            "that begin with a letter, a digit or _ and hold, beside those, only . + - @ and single spaces"
        )
    if path == RESERVED:
        raise ValueError(f"file name {path!r} is the evaluator's: choose another one")


def language_of(path: str) -> str | None:
    """The language of a file by its suffix, ``None`` for one that is not known."""
    return _LANGUAGES.get(PurePosixPath(path).suffix.lower())


def commonest_language(files: Mapping[str, str]) -> str:
    """The known language that most of the characters are in, ``text`` without any."""
    sizes: dict[str, int] = {}
    for path, text in files.items():
        if (language := language_of(path)) is not None:
            sizes[language] = sizes.get(language, 0) + len(text)
    return max(sizes, key=lambda language: sizes[language], default="text")


def named(paths: Iterable[str], *, most: int = 10) -> str:
    """Paths as a list in a message, at most ``most`` of them."""
    ordered = sorted(paths)
    more = f" and {len(ordered) - most} more" if len(ordered) > most else ""
    return ", ".join(ordered[:most]) + more
