"""A small world to search in: programs that return a number, judged by its bits; replies made from the request."""

from __future__ import annotations

import ast
import re

from evolve.config import SearchConfig
from evolve.manifest import Manifest
from evolve.program import Evaluation, IterationRecord, Reply, Usage
from evolve.randomness import generator
from evolve.request import Request
from evolve.search import Search
from evolve.task import TestsTask
from tests.evolve.builders import evaluation

BITS = 5
SEED_SOURCE = "def f(x):\n    return 0\n"


def task(seed_source: str = SEED_SOURCE) -> TestsTask:
    """One whose tests are never run here: :func:`judge` stands for the evaluator."""
    body = {
        "name": "bits",
        "statement": "Return the number whose bits are all set.",
        "entry_point": "f",
        "tests": [{"name": f"t{bit}", "args": [bit], "expected": 1} for bit in range(BITS)],
        "seed_program": seed_source,
    }
    return TestsTask.model_validate(body)


def number_of(source: str) -> int:
    return int(re.findall(r"return (\d+)", source)[0])


def judge(source: str) -> Evaluation:
    """One component per bit of the number that the program returns."""
    ast.parse(source)
    value = number_of(source)
    return evaluation([float(value >> bit & 1) for bit in range(BITS)])


def answer(value: int) -> str:
    return f"<answer>\ndef f(x):\n    return {value}\n</answer>\n"


def reply_to(request: Request) -> Reply:
    """n texts of up to m answers each: the parent's number with one bit flipped, or a random number."""
    texts = []
    for sample in range(request.n):
        rng = generator(request.seed, sample, "toy model")
        parts = ["Let me think.\n"]
        for _ in range(request.m):
            kind = rng.random()
            value = int(rng.integers(2**BITS))
            if request.parent_source is not None:
                value = number_of(request.parent_source) ^ (1 << int(rng.integers(BITS)))
            parts.append("" if kind < 0.1 else "<answer>\ndef f(:\n</answer>\n" if kind < 0.2 else answer(value))
        texts.append("".join(parts))
    usage = Usage(calls=1, prompt_tokens=10, completion_tokens=5 * request.n)
    return Reply(texts=tuple(texts), finished=(True,) * request.n, usage=usage)


def new_search(config: SearchConfig, *, seed: int = 0, manifest: Manifest | None = None) -> Search:
    return Search(task(), config, seed=seed, manifest=manifest)


def step(search: Search) -> IterationRecord:
    """One whole iteration."""
    request = search.ask()
    reply = reply_to(request)
    candidates = search.read(request, reply)
    return search.tell(request, reply, candidates, [judge(child.source) for child in candidates.children])


def run(search: Search, iterations: int) -> list[IterationRecord]:
    """Iterations one after the other, up to ``iterations`` or the end."""
    records = []
    while search.told < iterations and not search.finished:
        records.append(step(search))
    return records


class ToyEvaluator:
    """The world's evaluator, counting what it judges."""

    def __init__(self) -> None:
        self.judged: list[str] = []

    async def evaluate(self, source: str) -> Evaluation:
        self.judged.append(source)
        return judge(source)
