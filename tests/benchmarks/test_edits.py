"""The measure of inexact edits, on one file."""

from __future__ import annotations

import random

from benchmarks.edits import PERTURBATIONS, answer_of, edits_of, same
from evolve.edits import apply_edit

SOURCE = "def f(x):\n    if x:\n        y = 1\n        return y\n\n    return 2\n\n\ndef g():\n    return f(3)\n"


def test_perturbed_edits_come_to_the_same_program() -> None:
    rng = random.Random(1)
    edits = edits_of(SOURCE, rng)
    assert edits
    for edit in edits:
        expected = apply_edit(answer_of(edit), parent=SOURCE, edit="diff").source
        for name, perturb in PERTURBATIONS.items():
            found = apply_edit(answer_of(perturb(edit, rng)), parent=SOURCE, edit="diff").source
            assert name == "dedented" or same(found, expected), name
