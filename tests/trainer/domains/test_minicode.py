"""The domain: its interpreter agrees with Python, its split holds, its prompts are the search's prompts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evolve.chain import ChainFormat, parse_chain
from evolve.evaluator import make_evaluator
from evolve.program import Program, source_digest
from evolve.prompts import render_completion
from evolve.randomness import generator
from evolve.task import TestsTask, prompt_context
from sandbox import CallTest, Sandbox
from trainer.domains.minicode.domain import MinicodeDomain
from trainer.domains.minicode.grammar import ENTRY_POINT, parse
from trainer.domains.minicode.language import build_tokenizer, prompt_format
from trainer.domains.minicode.problems import held_out, mutate, random_problem, random_program
from trainer.domains.minicode.suite import enumerate_suite, suite_problem, task_document, write_suite
from trainer.domains.minicode.warmup import IDENTITY, example, random_parent

RNG = 7


def test_the_interpreter_agrees_with_python() -> None:
    rng = generator(RNG, "interpreter")
    for _ in range(300):
        problem = random_problem(rng, heldout=False, straight=0.3)
        names: dict[str, object] = {}
        exec(problem.target.source, names)
        function = names[ENTRY_POINT]
        assert callable(function)
        assert [tuple(function(list(x))) for x in problem.inputs] == list(problem.outputs)


async def test_the_interpreter_agrees_with_the_sandbox() -> None:
    rng = generator(RNG, "sandbox")
    async with Sandbox(concurrency=1) as sandbox:
        for _ in range(5):
            problem = random_problem(rng, heldout=True)
            candidate = mutate(problem.target, rng)
            pairs = zip(problem.inputs, problem.outputs, strict=True)
            tests = [CallTest(name=str(i), args=(list(x),), expected=list(y)) for i, (x, y) in enumerate(pairs)]
            verdicts = await sandbox.grade_calls(candidate.source, ENTRY_POINT, tests)
            assert [v.passed for v in verdicts] == list(problem.rewards(candidate) == 1)


def test_source_and_program_are_one_to_one() -> None:
    rng = generator(RNG, "source")
    for _ in range(200):
        program = random_program(rng, straight=0.3)
        assert parse(program.source) == program
    assert parse(IDENTITY.source) == IDENTITY
    assert parse("import os\n") is None
    assert parse("def f(x):\n    x = open(x)\n    return x\n") is None


def test_every_part_of_a_target_matters_and_tests_fall_in_both_branches() -> None:
    rng = generator(RNG, "parts")
    for _ in range(100):
        problem = random_problem(rng, heldout=False)
        assert 8 <= problem.d <= 16
        taken = [problem.target.takes_then(x) for x in problem.inputs]
        assert 3 <= sum(taken[:6]) <= 3
        assert abs(2 * sum(taken) - problem.d) <= 1
        assert problem.rewards(mutate(problem.target, rng)).mean() + 1 > 0
        assert problem.rewards(problem.target).min() == 1


def test_training_and_held_out_sides_never_meet() -> None:
    rng = generator(RNG, "split")
    shown = []
    for m in (1, 3):
        for _ in range(60):
            completion = example(rng, m).completion
            shown += [parse(answer.text) for answer in parse_chain(completion, ChainFormat(m=m)).answers]
    assert all(program is not None and not held_out(program) for program in shown)
    assert all(held_out(suite_problem(2000, i).target) for i in range(10))
    parents = [random_parent(random_problem(rng, heldout=False), rng) for _ in range(100)]
    assert not any(held_out(parent) for parent in parents if parent != IDENTITY)


def test_prompts_are_short_and_decode_to_themselves() -> None:
    tokenizer = build_tokenizer()
    domain = MinicodeDomain()
    rng = generator(RNG, "prompts")
    for _ in range(60):
        problem = random_problem(rng, heldout=False)
        parent = random_parent(problem, rng).source
        for text in (domain.prompt(problem, 1), domain.prompt(problem, 3, parent)):
            ids = tokenizer(text)["input_ids"]
            assert tokenizer.decode(ids) == text
            assert len(ids) + prompt_format(3).max_tokens <= 256


def test_a_mutation_prompt_shows_the_parent_and_its_failures() -> None:
    problem = random_problem(generator(RNG, "mutation"), heldout=False)
    parent = mutate(problem.target, generator(RNG, "parent"))
    text = MinicodeDomain().prompt(problem, 3, parent.source)
    passed = problem.rewards(parent)
    assert [line[0] for line in text.splitlines()[:6]] == ["+" if ok else "-" for ok in passed[:6]]
    assert f"# {int((passed[6:] == 0).sum())}\n{parent.source}= 3\n" in text


@pytest.mark.parametrize("m", [1, 3])
async def test_a_search_asks_exactly_what_training_asked(m: int) -> None:
    problem = suite_problem(2000, 0)
    task = TestsTask.model_validate(task_document(problem, "p"))
    parent = mutate(problem.target, generator(RNG, "asked"))
    async with Sandbox(concurrency=1) as sandbox:
        evaluation = await make_evaluator(task, sandbox).evaluate(parent.source)
    assert list(evaluation.reward) == problem.rewards(parent).tolist()
    program = Program(
        number=1,
        iteration=1,
        index=0,
        island=0,
        parents=(0,),
        source=parent.source,
        digest=source_digest(parent.source),
        operator="scratch",
        evaluation=evaluation,
    )
    template = prompt_format(m).template
    assert template is not None
    for shown, source in ((None, None), (program, parent.source)):
        context = prompt_context(task, parent=shown, inspirations=(), m=m, edit="whole")
        assert render_completion(template, context) == MinicodeDomain().prompt(problem, m, source)


def test_the_tokenizer_reads_any_ascii_text_back() -> None:
    tokenizer = build_tokenizer()
    text = "".join(chr(code) for code in range(32, 127)) + "\n"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_a_suite_is_reproducible_and_hides_its_targets(tmp_path: Path) -> None:
    write_suite(tmp_path / "a.json", count=3, seed=5)
    write_suite(tmp_path / "b.json", count=2, seed=5, skip=1)
    first = json.loads((tmp_path / "a.json").read_text())
    second = json.loads((tmp_path / "b.json").read_text())
    assert first["tasks"][1:] == second["tasks"]
    assert [sum(test["visible"] for test in task["tests"]) for task in first["tasks"]] == [6, 6, 6]
    assert suite_problem(5, 0).target.source not in json.dumps(first)
    result = enumerate_suite(tmp_path / "a.json", evaluations=20, seeds=2)
    assert 0 <= result["solved_share"] <= 1
    assert 0 < result["best"] <= 1


def test_answers_outside_of_the_grammar_earn_nothing() -> None:
    problem = random_problem(generator(RNG, "outside"), heldout=False)
    np.testing.assert_array_equal(MinicodeDomain().rewards(problem, "print(1)"), np.zeros(problem.d))


@pytest.mark.parametrize("m", [1, 3])
def test_an_example_has_as_many_distinct_answers_as_asked(m: int) -> None:
    rng = generator(RNG, "answers", m)
    for _ in range(50):
        chain = parse_chain(example(rng, m).completion, ChainFormat(m=m))
        assert (len(chain.answers), chain.duplicates, chain.missing) == (m, 0, 0)
