"""The whole loop with real parts: HTTP to a model server, the jail, and verdicts per test."""

from __future__ import annotations

import json
from typing import Any

from evolve.config import SearchConfig
from evolve.driver import MemoryStore, run_search
from evolve.evaluator import make_evaluator
from evolve.models import OpenAIModel
from evolve.search import Search
from evolve.task import TestsTask
from sandbox.runner import Sandbox
from sandbox.verdict import Status
from tests.evolve.http_server import serving

TASK = {
    "name": "absolute",
    "statement": "Return the absolute value.",
    "entry_point": "f",
    "tests": [{"args": [value], "expected": abs(value)} for value in (-2, -1, 3, 4)],
}
NEGATE, KEEP, SOLVE = "return -x", "return x", "return -x if x < 0 else x"


def program(body: str) -> str:
    return f"<answer>\ndef f(x):\n    {body}\n</answer>"


async def improve(body: dict[str, Any]) -> tuple[int, bytes]:
    """A model that needs to see a half-right program and its failing tests to get it right."""
    prompt = body["messages"][-1]["content"]
    texts = [program(NEGATE) + program(KEEP), program("return 1 / 0") + program("while True: pass")]
    if "passes 2 of 4 tests" in prompt and "FAILED (wrong): f(3)" in prompt:
        texts = ["First I look at the failing tests.\n" + program(SOLVE)]
    found = [{"index": i, "message": {"content": text}, "finish_reason": "stop"} for i, text in enumerate(texts)]
    usage = {"prompt_tokens": len(prompt), "completion_tokens": 10}
    return 200, json.dumps({"choices": found[: body["n"]], "usage": usage}).encode()


async def test_a_search_over_http_and_jail_solves_the_task() -> None:
    task = TestsTask.model_validate(TASK | {"limits": {"wall_s": 1.0}})
    config = SearchConfig(samples=2, answers=2, islands=1, scratch_probability=0.0)
    store = MemoryStore()
    sandbox = Sandbox(concurrency=2)
    try:
        async with serving(improve) as url, OpenAIModel(url, "improver") as model:
            summary = await run_search(
                Search(task, config, seed=1),
                model=model,
                evaluator=make_evaluator(task, sandbox),
                store=store,
                iterations=20,
            )
    finally:
        await sandbox.close()
    assert summary.ended == "solved"
    first = {p.source.splitlines()[1].strip(): p.evaluation for p in store.records[0].programs}
    assert first[NEGATE].reward == (1.0, 1.0, 0.0, 0.0)
    assert first[KEEP].reward == (0.0, 0.0, 1.0, 1.0)
    assert set(first["return 1 / 0"].statuses) == {Status.ERROR}
    assert set(first["while True: pass"].statuses) == {Status.TIMEOUT}
    last = store.records[-1]
    solution = next(p for p in last.programs if p.evaluation.solved)
    assert SOLVE in solution.source
    assert solution.operator == "rewrite"
    parents = {p.number: p for record in store.records for p in record.programs}
    assert NEGATE in parents[solution.parents[0]].source
    assert [item.reason for item in last.rejected][:1] == ["missing"]
