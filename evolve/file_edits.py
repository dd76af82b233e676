"""From an answer to a new program of several files (see :mod:`evolve.files`).

1. An answer gives whole files, SEARCH/REPLACE blocks or both, each for the file that it names
   (:mod:`evolve.file_answers`). Every file is edited as a program of one file is (:mod:`evolve.edits`), all or none.
2. Files that an answer does not name stay as they are. No file can be removed; an empty block for a file that is not
   empty is refused, since that is what it may have meant.
3. Where some file of the seed program has EVOLVE-BLOCK markers, its files without markers are read-only; an answer may
   repeat them, apart from layout and comments. Where none has, everything may change.
4. A path that the program does not have is refused, unless the task allows new files.
"""

from __future__ import annotations

from dataclasses import dataclass

from evolve.edits import EditResult, Outcome, Refused, apply_edit, has_markers
from evolve.file_answers import Part, read_parts
from evolve.files import check_files, check_path, join_files, named, split_files
from evolve.program import source_digest


@dataclass(frozen=True, kw_only=True, slots=True)
class FileRules:
    """What answers may change. read_only: paths of files that stay as they are. new_files: whether there may be any."""

    read_only: frozenset[str] = frozenset()
    new_files: bool = False


def file_rules(seed_source: str, *, new_files: bool = False) -> FileRules | None:
    """The rules for a task with this seed program, ``None`` for a program of one file."""
    files = split_files(seed_source)
    return None if files is None else FileRules(read_only=read_only(files), new_files=new_files)


def read_only(files: dict[str, str]) -> frozenset[str]:
    """The files without EVOLVE-BLOCK markers among files of which some have any."""
    marked = {path for path, text in files.items() if has_markers(text)}
    return frozenset(files.keys() - marked) if marked else frozenset()


def apply_file_edits(
    answer: str, *, parent: str, rules: FileRules, edit: str = "whole", max_chars: int | None = None
) -> EditResult:
    """The program of several files that ``answer`` makes of ``parent``; never raises, whatever a model wrote.

    edit: what was asked for, ``whole`` or ``diff``. max_chars: of the new program's text.
    """
    files = split_files(parent)
    if files is None:
        return EditResult(outcome=Outcome.NO_PARENT, detail="the parent is no program of several files")
    try:
        source, fuzzy = _edited(answer, files, rules, edit)
        if max_chars is not None and len(source) > max_chars:
            raise Refused(Outcome.TOO_LONG, f"{len(source):,} characters, at most {max_chars:,} are allowed")
    except Refused as refused:
        return EditResult(outcome=refused.outcome, detail=refused.detail)
    outcome = Outcome.UNCHANGED if source == parent else Outcome.APPLIED
    return EditResult(outcome=outcome, source=source, fuzzy=fuzzy)


def _edited(answer: str, files: dict[str, str], rules: FileRules, edit: str) -> tuple[str, bool]:
    """The new program's text, and whether white space had to be forgiven anywhere."""
    new, fuzzy = dict(files), False
    for path, parts in _by_file(read_parts(answer, files), files, rules, edit).items():
        try:
            new[path], loosely = _changed(path, parts, files, rules)
        except Refused as refused:
            raise Refused(refused.outcome, f"{path}: {refused.detail}") from None
        fuzzy = fuzzy or loosely
    try:
        check_files(new)
    except ValueError as error:
        raise Refused(Outcome.BAD_FILE, str(error)) from None
    return join_files(new), fuzzy


def _by_file(parts: list[Part], files: dict[str, str], rules: FileRules, edit: str) -> dict[str, list[Part]]:
    """The parts of each file, in order."""
    if not parts:
        outcome = Outcome.NO_BLOCKS if edit == "diff" else Outcome.NO_CODE
        raise Refused(outcome, "neither a SEARCH/REPLACE block nor a code block")
    editable = sorted(files.keys() - rules.read_only)
    only = editable[0] if len(editable) == 1 and (len(parts) == 1 or all(part.blocks for part in parts)) else None
    found: dict[str, list[Part]] = {}
    for part in parts:
        if (path := part.path or only) is not None:
            found.setdefault(path, []).append(part)
        elif part.blocks:
            raise Refused(Outcome.NO_FILE, "a SEARCH/REPLACE block names no file: its path goes on the line before it")
    if not found:
        raise Refused(Outcome.NO_FILE, "no code block names a file: its path goes on the line before it")
    return found


def _changed(path: str, parts: list[Part], files: dict[str, str], rules: FileRules) -> tuple[str, bool]:
    """A file after its parts, and whether white space had to be forgiven."""
    old, blocks = files.get(path), all(part.blocks for part in parts)
    if old is None:
        _check_new(path, files, rules, blocks=blocks)
    if not blocks and len(parts) > 1:
        raise Refused(Outcome.MALFORMED, "given more than once in one answer")
    text = "".join(part.text for part in parts)
    if not text.strip():
        if old and old.strip():
            raise Refused(Outcome.NO_CODE, "its code block is empty, and no file can be removed")
        return old or "", False
    result = apply_edit(text, parent=old, edit="diff" if blocks else "whole")
    if result.source is None:
        raise Refused(result.outcome, result.detail)
    if old is not None and path in rules.read_only:
        if source_digest(result.source) != source_digest(old):
            raise Refused(Outcome.OUTSIDE_BLOCK, "it has no EVOLVE-BLOCK, so it may not change")
        return old, result.fuzzy
    return result.source, result.fuzzy


def _check_new(path: str, files: dict[str, str], rules: FileRules, *, blocks: bool) -> None:
    if blocks or not rules.new_files:
        raise Refused(Outcome.UNKNOWN_FILE, f"the program has no such file, only {named(files)}")
    try:
        check_path(path)
    except ValueError as error:
        raise Refused(Outcome.BAD_FILE, str(error)) from None
