"""How often SEARCH/REPLACE edits find their place although the model copied them inexactly.

``python -m benchmarks.edits`` takes every Python file of this repository's packages, edits runs of its lines, and
perturbs the SEARCH part as models do: line ends, trailing blanks, another indentation (REPLACE moved along with it),
tabs, blank lines around or between, wrapped in a fence. A perturbed edit *succeeds* when the resulting program is the
one that the exact edit gives, up to blanks at line ends and empty lines; a *wrong* one gives another program.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import Figure, run
from evolve.edits import apply_edit

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("evolve", "sandbox", "service", "trainer")
EDITS_PER_FILE = 4

Edit = tuple[list[str], list[str]]
"""SEARCH and REPLACE lines."""


def _each(edit: Edit, change: Callable[[str], str]) -> Edit:
    return [change(line) for line in edit[0]], [change(line) for line in edit[1]]


def _dedent(line: str) -> str:
    return line.removeprefix("    ")


PERTURBATIONS: dict[str, Callable[[Edit, random.Random], Edit]] = {
    "crlf": lambda edit, rng: _each(edit, lambda line: line + "\r"),
    "trailing_blanks": lambda edit, rng: ([line + " " * rng.randrange(3) for line in edit[0]], edit[1]),
    "blank_lines_around": lambda edit, rng: (["", *edit[0], ""], edit[1]),
    "indented": lambda edit, rng: _each(edit, lambda line: f"    {line}" if line else line),
    "dedented": lambda edit, rng: _each(edit, _dedent),
    "tabs": lambda edit, rng: _each(edit, lambda line: line.replace("    ", "\t")),
    "blanks_within": lambda edit, rng: ([line.replace(" = ", "  =  ").replace(", ", ",") for line in edit[0]], edit[1]),
    "blank_lines_dropped": lambda edit, rng: ([line for line in edit[0] if line.strip()], edit[1]),
    "search_dedented_only": lambda edit, rng: ([_dedent(line) for line in edit[0]], edit[1]),
}


def answer_of(edit: Edit) -> str:
    """A reply with one block."""
    lines = ["<<<<<<< SEARCH", *edit[0], "=======", *edit[1], ">>>>>>> REPLACE", ""]
    return "\n".join(lines)


def same(left: str | None, right: str | None) -> bool:
    """Whether two programs are equal up to blanks at line ends and empty lines."""
    texts = [[line.rstrip() for line in (text or "").splitlines() if line.strip()] for text in (left, right)]
    return texts[0] == texts[1]


def edits_of(source: str, rng: random.Random) -> list[Edit]:
    """Edits of a program that apply exactly: a few lines, the last of which is marked and followed by another."""
    lines = source.splitlines()
    edits: list[Edit] = []
    for _ in range(EDITS_PER_FILE):
        start = rng.randrange(max(1, len(lines) - 6))
        search = lines[start : start + rng.randrange(2, 7)]
        if not any(line.strip() for line in search):
            continue
        indent = search[-1][: len(search[-1]) - len(search[-1].lstrip())]
        edit = (search, [*search, f"{indent}marked = True"])
        if apply_edit(answer_of(edit), parent=source, edit="diff").outcome == "applied":
            edits.append(edit)
    return edits


def measure() -> list[Figure]:
    """Success rate of every perturbation, and wrong edits in all, in percent."""
    rng = random.Random(0)
    tried: Counter[str] = Counter()
    good: Counter[str] = Counter()
    wrong = 0
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for edit in edits_of(source, rng):
            expected = apply_edit(answer_of(edit), parent=source, edit="diff").source
            for name, perturb in PERTURBATIONS.items():
                changed = perturb(edit, rng)
                found = apply_edit(answer_of(changed), parent=source, edit="diff").source
                tried[name] += 1
                good[name] += same(found, expected)
                wrong += found is not None and not same(found, expected)
    rates = [
        Figure(name=f"edit_{name}", value=100 * good[name] / max(1, tried[name]), unit="%") for name in PERTURBATIONS
    ]
    total = sum(tried.values())
    overall = Figure(name="edit_success", value=100 * sum(good.values()) / max(1, total), unit="%")
    return [*rates, overall, Figure(name="edit_wrong", value=100 * wrong / max(1, total), unit="%")]


if __name__ == "__main__":
    run("SEARCH/REPLACE edits that are copied inexactly", measure)
