"""Held-out minicode problems as tasks of a search, and what plain enumeration does on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from evolve.randomness import generator
from trainer.domains.minicode.grammar import ENTRY_POINT
from trainer.domains.minicode.problems import SHOWN, Problem, random_problem, random_program
from trainer.domains.minicode.prompting import STATEMENT
from trainer.domains.minicode.warmup import IDENTITY


def suite_problem(seed: int, index: int) -> Problem:
    """Problem ``index`` of the held-out stream of ``seed``."""
    return random_problem(generator(seed, "suite", index), heldout=True)


def suite_document(*, count: int, seed: int, skip: int = 0) -> dict[str, Any]:
    """A suite of problems ``skip`` to ``skip + count - 1``, in the service's task format. Targets are not included."""
    tasks = [task_document(suite_problem(seed, index), f"minicode-{index:03d}") for index in range(skip, skip + count)]
    return {"name": f"minicode held-out, seed {seed}", "tasks": tasks}


def task_document(problem: Problem, name: str) -> dict[str, Any]:
    """One problem as a tests task; the first six tests are visible, the seed program returns its input."""
    pairs = zip(problem.inputs, problem.outputs, strict=True)
    return {
        "format": "tests",
        "name": name,
        "statement": STATEMENT,
        "entry_point": ENTRY_POINT,
        "tests": [
            {"name": f"t{i:02d}", "args": [list(x)], "expected": list(y), "visible": i < SHOWN}
            for i, (x, y) in enumerate(pairs)
        ],
        "seed_program": IDENTITY.source,
        "limits": {"wall_s": 2, "cpu_s": 1, "memory_mb": 128},
    }


def write_suite(path: Path, *, count: int, seed: int, skip: int = 0) -> None:
    """Write a suite as JSON."""
    text = json.dumps(suite_document(count=count, seed=seed, skip=skip), indent=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def enumerate_suite(path: Path, *, evaluations: int, seeds: int) -> dict[str, float]:
    """Solved and best@evaluations of drawing programs of the grammar at random, means over problems and seeds."""
    solved, best = [], []
    for task in json.loads(path.read_text(encoding="utf-8"))["tasks"]:
        inputs = [tuple(test["args"][0]) for test in task["tests"]]
        outputs = [tuple(test["expected"]) for test in task["tests"]]
        for seed in range(seeds):
            rng = generator(seed, "enumerate", task["name"])
            scalar = max(_score(random_program(rng), inputs, outputs) for _ in range(evaluations))
            solved.append(scalar == 1.0)
            best.append(scalar)
    return {
        "evaluations": evaluations,
        "seeds": seeds,
        "solved_share": round(float(np.mean(solved)), 4),
        "best": round(float(np.mean(best)), 4),
    }


def _score(program: Any, inputs: list[tuple[int, ...]], outputs: list[tuple[int, ...]]) -> float:
    return float(np.mean([program(x) == y for x, y in zip(inputs, outputs, strict=True)]))
