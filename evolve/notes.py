"""Meta-notes: what a run has learnt so far, as a few lines of text for the prompt, made from its records alone.

Deterministic and without any model call. Nothing is said about hidden tests.
"""

from __future__ import annotations

from collections import Counter, deque

from evolve.lineage import Lineage, change
from evolve.program import IterationRecord, Program

_WINDOW = 20  # iterations that rates are about
_STEPS = 3  # improvements of the best program that are told
_NAMED = 12  # tests that are named
_STEP_CHARS = 300


class Notes:
    """visible: names of the tests that prompts may show."""

    def __init__(self, visible: tuple[str, ...]) -> None:
        self._visible = visible
        self._passed: set[str] = set()
        self._recent: deque[Counter[str]] = deque(maxlen=_WINDOW)
        self._moves: dict[str, list[int]] = {}
        self._steps: deque[str] = deque(maxlen=_STEPS)
        self._best = 0.0

    def begin(self, seed: Program) -> None:
        """Note the seed program."""
        self._best = seed.evaluation.scalar
        self._note_passed(seed)

    def absorb(self, record: IterationRecord, lineage: Lineage) -> None:
        """Take in an iteration. lineage: knows the parents, as far as they are remembered."""
        outcomes = Counter(_reason(item.reason, item.detail) for item in record.rejected)
        children = record.programs[: record.evaluations]
        outcomes["judged"] = len(children)
        self._recent.append(outcomes)
        if record.parents:
            tally = self._moves.setdefault(str(record.info.get("move", "improve")), [0, 0])
            tally[0] += 1
            tally[1] += bool(record.info.get("improved", False))
        for child in children:
            self._note_passed(child)
            if child.evaluation.scalar > self._best:
                self._note_step(child, lineage)
                self._best = child.evaluation.scalar

    def lines(self) -> tuple[str, ...]:
        """The notes, most useful first; empty before anything was learnt."""
        lines = [self._open_tests(), *self._steps, self._rates(), self._troubles()]
        return tuple(line for line in lines if line) if self._recent else ()

    def _note_passed(self, program: Program) -> None:
        evaluation = program.evaluation
        pairs = zip(evaluation.components, evaluation.statuses, strict=True)
        self._passed.update(name for name, status in pairs if status == "passed")

    def _note_step(self, child: Program, lineage: Lineage) -> None:
        line = (
            f"Iteration {child.iteration} raised the best score from {self._best:.3f} to {child.evaluation.scalar:.3f}"
        )
        parent = lineage.find(child.parents[0]) if child.parents else None
        if parent is not None:
            changed = [text for text in change(parent, child).diff.splitlines() if text.startswith(("+", "-"))]
            line += f" ({child.operator}): " + " | ".join(text.strip() for text in changed)
        self._steps.append(line if len(line) <= _STEP_CHARS else line[: _STEP_CHARS - 1] + "…")

    def _open_tests(self) -> str:
        never = [name for name in self._visible if name not in self._passed]
        if not never:
            return ""
        more = f" and {len(never) - _NAMED} more" if len(never) > _NAMED else ""
        return f"No program has passed yet: {', '.join(never[:_NAMED])}{more}."

    def _rates(self) -> str:
        if len(self._moves) < 2:
            return ""
        rates = [f"{name} {gains} of {tries}" for name, (tries, gains) in sorted(self._moves.items())]
        return f"Improved on its parent: {', '.join(rates)}."

    def _troubles(self) -> str:
        total: Counter[str] = sum(self._recent, Counter())
        answers = total.total()
        troubles = sorted(((count, name) for name, count in total.items() if name != "judged"), reverse=True)
        if not troubles:
            return ""
        named = ", ".join(f"{name} {count}" for count, name in troubles[:4])
        return f"Of the last {answers} answers these were of no use: {named}."


def _reason(reason: str, detail: str) -> str:
    """A rejection in words; of the detail only the outcome's name, since the rest may be anything."""
    words = {
        "missing": "not given",
        "duplicate": "repeated in the same reply",
        "known": "equal to an earlier program",
        "unparsable": "not valid code",
    }
    if reason == "bad_edit":
        return f"edit failed ({detail.split(':', 1)[0].replace('_', ' ')})"
    return words.get(reason, reason)
