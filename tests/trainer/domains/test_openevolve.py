"""OpenEvolve tasks as a domain: prompts always show a program, rewards are the search's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evolve.evaluator import make_evaluator
from evolve.randomness import generator
from evolve.suite import load_task
from sandbox import Sandbox
from trainer.domains import make_domain
from trainer.domains.base import DomainError

EVALUATOR = """
import importlib.util

def evaluate(path):
    spec = importlib.util.spec_from_file_location("candidate", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = module.answer()
    return {"near": max(0.0, 1 - abs(x - 3)), "small": 1 / (1 + abs(x)), "combined_score": 0.5 if x == 3 else 0.25}
"""


def write_task(folder: Path, seed: str = "def answer():\n    return 2.5\n") -> Path:
    folder.mkdir(parents=True)
    (folder / "initial_program.py").write_text(seed)
    (folder / "evaluator.py").write_text(EVALUATOR)
    return folder


async def test_prompts_show_a_program_and_rewards_are_the_searchs(tmp_path: Path) -> None:
    path = write_task(tmp_path / "task")
    subject = make_domain("openevolve", {"tasks": str(path)})
    problem = subject.problem(generator(0), heldout=False)
    assert subject.problem(generator(0), heldout=True) == problem
    with pytest.raises(DomainError, match="not known before"):
        subject.components(problem)
    first = await subject.ask(problem, 3)
    assert isinstance(first, list)
    assert "return 2.5" in first[-1]["content"]
    assert subject.components(problem) == ("near", "small")
    parent = "def answer():\n    return 4\n"
    second = await subject.ask(problem, 3, parent=parent, goal=np.array([0.75, 0.25]))
    assert "return 4" in second[-1]["content"]
    assert "near 0.75, small 0.25" in second[-1]["content"]
    judged = await subject.judge(problem, "def answer():\n    return 3\n")
    np.testing.assert_allclose(judged.reward, [1, 0.25])
    assert judged.scalar == 0.5
    async with Sandbox(concurrency=1) as sandbox:
        evaluation = await make_evaluator(load_task(path), sandbox).evaluate(parent)
    again = await subject.judge(problem, parent)
    assert (tuple(again.reward), again.scalar) == (evaluation.reward, evaluation.scalar)
    failed = await subject.judge(problem, "raise SystemExit\n")
    assert (failed.reward.tolist(), failed.scalar, failed.failure) == ([0, 0], 0, None)
    await subject.close()


async def test_a_judge_that_fails_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.domains.programs._PAUSE_S", 0.0)
    subject = make_domain("openevolve", {"tasks": str(write_task(tmp_path / "task"))})
    problem = subject.problem(generator(0), heldout=False)
    await subject.ask(problem, 1)

    class Broken:
        async def evaluate(self, source: str) -> object:
            evaluation = await make_evaluator(problem, sandbox).evaluate(source)
            return type(evaluation)(
                **{**{s: getattr(evaluation, s) for s in evaluation.__slots__}, "infrastructure": "no"}
            )

    async with Sandbox(concurrency=1) as sandbox:
        subject._evaluators[problem.name] = Broken()
        judged = await subject.judge(problem, "def answer():\n    return 1\n")
        assert judged.failure == "no"
        with pytest.raises(DomainError, match="cannot be judged: no"):
            await subject.ask(problem, 1, parent="def answer():\n    return 7\n")
    await subject.close()


def test_held_out_tasks_are_others(tmp_path: Path) -> None:
    for side in ("a", "b"):
        write_task(tmp_path / side / f"task-{side}")
    subject = make_domain("openevolve", {"tasks": str(tmp_path / "a"), "heldout": str(tmp_path / "b")})
    assert subject.problem(generator(0), heldout=False).name == "task-a"
    assert subject.problem(generator(0), heldout=True).name == "task-b"
    with pytest.raises(DomainError, match="'task-a' is in both"):
        make_domain("openevolve", {"tasks": str(tmp_path / "a"), "heldout": str(tmp_path / "a" / "task-a")})
    with pytest.raises(DomainError, match="does not exist"):
        make_domain("openevolve", {"tasks": str(tmp_path / "none")})
    with pytest.raises(DomainError, match="tasks"):
        make_domain("openevolve")
