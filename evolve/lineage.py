"""How a program came to be: its last ancestors and what changed, from a bounded memory of recent programs."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from evolve.files import split_files
from evolve.program import Program
from evolve.prompts import ShownChange

REMEMBERED = 1_024
_DIFF_LINES = 40


class Lineage:
    """The last :data:`REMEMBERED` programs that the population has taken in, in order."""

    def __init__(self) -> None:
        self._programs: dict[int, Program] = {}
        self._changes: dict[int, ShownChange] = {}  # what remembered programs changed, as far as it was asked for

    def remember(self, program: Program) -> None:
        self._programs[program.number] = program
        if len(self._programs) > REMEMBERED:
            oldest = next(iter(self._programs))
            del self._programs[oldest]
            self._changes.pop(oldest, None)

    def find(self, number: int) -> Program | None:
        """A program that is still remembered."""
        return self._programs.get(number)

    def history(self, program: Program, count: int, known: Callable[[int], Program | None]) -> tuple[ShownChange, ...]:
        """The last ``count`` changes that led to a program, oldest first; fewer where ancestors are forgotten.

        known: looks elsewhere for an ancestor that is not remembered. Copies by migration are no changes.
        """
        changes: list[ShownChange] = []
        child = program
        while len(changes) < count and child.parents:
            parent = self.find(child.parents[0]) or known(child.parents[0])
            if parent is None:
                break
            if parent.source != child.source:
                changes.append(self._change(parent, child))
            child = parent
        return tuple(reversed(changes))

    def _change(self, parent: Program, child: Program) -> ShownChange:
        """See :func:`change`; made once, since good programs are shown again and again."""
        if child.number not in self._programs:
            return change(parent, child)
        if child.number not in self._changes:
            self._changes[child.number] = change(parent, child)
        return self._changes[child.number]


def change(parent: Program, child: Program) -> ShownChange:
    """What a child changed, as a unified diff without file names, and what became of the score.

    Of a program of several files each file's part follows a line with its path.
    """
    before, after = split_files(parent.source), split_files(child.source)
    kept: list[str] = []
    if before is None or after is None:
        kept = _changed_lines(parent.source, child.source)
    else:
        for path in sorted(before.keys() | after.keys()):
            if lines := _changed_lines(before.get(path, ""), after.get(path, "")):
                kept += [path, *lines]
    if len(kept) > _DIFF_LINES:
        kept = [*kept[:_DIFF_LINES], f"… {len(kept) - _DIFF_LINES} more lines"]
    return ShownChange(
        operator=child.operator,
        before=parent.evaluation.scalar,
        after=child.evaluation.scalar,
        diff="\n".join(kept),
    )


def _changed_lines(before: str, after: str) -> list[str]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]
