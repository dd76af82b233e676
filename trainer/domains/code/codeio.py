"""The reference functions of PyPI ``reasoning-gym`` (codeio, 3,002 of them) as tests tasks.

Each record of ``codeio.jsonl.gz`` has a description, a function ``main_solution`` and a generator of inputs. Both are
strangers' code, so they run in the jail only: the generator and the function once, to make tests, then the function on
these tests like any candidate. Problems whose function does not pass its own tests (random answers, packages such as
NumPy that candidates do not have, answers that are no JSON) are left out: about a third. Building all takes most of an
hour, so it is done once and gives a suite:

    python -m trainer.domains.code.codeio codeio.jsonl.gz codeio-suite.json --limit 500

The package itself is not needed, only its file ``reasoning_gym/data/codeio.jsonl.gz``.
"""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from evolve.evaluator import make_evaluator
from evolve.humaneval import Skipped
from evolve.strict import explain
from evolve.task import TestsTask
from sandbox import Limits, Sandbox
from sandbox.evaluation import EvaluatorSettings
from trainer.domains.base import DomainError
from trainer.domains.records import read_records

ENTRY_POINT = "main_solution"
TESTS, VISIBLE = 12, 3
_FIELDS = ("task_description", "input_output_spec", "code_sample", "input_generator")
_LIMITS = Limits(wall_s=10.0, cpu_s=5.0, memory_mb=512)
_DRAWS = 8
_TEST_CHARS = 1_000

_EVALUATOR = """
import importlib.util, json, random

from openevolve.evaluation_result import EvaluationResult

def evaluate(path):
    spec = importlib.util.spec_from_file_location("reference", path)
    reference = importlib.util.module_from_spec(spec)
    reference.__dict__["Random"] = random.Random
    spec.loader.exec_module(reference)
    rng, cases, seen = random.Random(0), [], set()
    for _ in range(DRAWS * TESTS):
        try:
            given = reference.generate_inputs(rng)
            arguments = json.loads(json.dumps([given[name] for name in PARAMETERS]))
            case = [arguments, json.loads(json.dumps(reference.main_solution(**dict(zip(PARAMETERS, arguments)))))]
            text = json.dumps(case)
        except Exception:
            continue
        if len(text) <= CHARS and text not in seen:
            seen.add(text)
            cases.append(case)
        if len(cases) == TESTS:
            break
    return EvaluationResult(metrics={"cases": len(cases)}, artifacts={"cases": json.dumps(cases)})
"""


async def build(
    records: Sequence[Mapping[str, Any]], sandbox: Sandbox, *, prefix: str = "codeio"
) -> tuple[list[TestsTask], list[Skipped]]:
    """Tasks, and the records that did not become one with the reason."""
    results = await asyncio.gather(*(_one(f"{prefix}-{i}", record, sandbox) for i, record in enumerate(records)))
    return (
        [result for result in results if isinstance(result, TestsTask)],
        [result for result in results if isinstance(result, Skipped)],
    )


async def _one(name: str, record: Mapping[str, Any], sandbox: Sandbox) -> TestsTask | Skipped:
    if not all(isinstance(record.get(field), str) for field in _FIELDS):
        return Skipped(name=name, reason=f"needs the fields {', '.join(_FIELDS)}")
    try:
        parameters = _parameters(record["code_sample"])
        cases = await _cases(record, parameters, sandbox)
        task = _task(name, record, parameters, cases)
    except ValidationError as error:
        return Skipped(name=name, reason=explain(error))
    except (ValueError, SyntaxError, RecursionError) as error:
        return Skipped(name=name, reason=str(error))
    evaluation = await make_evaluator(task, sandbox).evaluate(record["code_sample"])
    if not evaluation.solved:
        failure = evaluation.infrastructure or next(message for message in evaluation.messages if message)
        return Skipped(name=name, reason=f"its function fails its own tests: {failure[:200]}")
    return task


def _parameters(source: str) -> list[str]:
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    main = next((node for node in functions if node.name == ENTRY_POINT), None)
    if main is None or main.args.vararg or main.args.kwarg or main.args.kwonlyargs:
        raise ValueError(f"it has no function {ENTRY_POINT} with plain parameters")
    return [argument.arg for argument in main.args.args]


async def _cases(record: Mapping[str, Any], parameters: list[str], sandbox: Sandbox) -> list[list[Any]]:
    """[arguments, answer] pairs that the reference gives, different ones."""
    source = f"from random import Random\n{record['code_sample']}\n\n{record['input_generator']}\n"
    settings = f"PARAMETERS, TESTS, DRAWS, CHARS = {parameters!r}, {TESTS}, {_DRAWS}, {_TEST_CHARS}\n"
    result = await sandbox.run_evaluator(
        source, {"evaluator.py": settings + _EVALUATOR}, limits=_LIMITS, settings=EvaluatorSettings(packages=False)
    )
    try:
        cases = json.loads(result.artifacts.get("cases", "[]"))
    except ValueError:
        raise ValueError("its answers are too long") from None
    if not isinstance(cases, list) or len(cases) < VISIBLE + 1:
        raise ValueError(f"it gave {len(cases)} different answers: {result.verdict.message[:200] or 'too few'}")
    return cases


def _task(name: str, record: Mapping[str, Any], parameters: list[str], cases: list[list[Any]]) -> TestsTask:
    statement = (
        f"{record['task_description'].strip()}\n\n{record['input_output_spec'].strip()}\n\n"
        f"The function is called with positional arguments: {ENTRY_POINT}({', '.join(parameters)})."
    )
    return TestsTask.model_validate(
        {
            "name": name,
            "statement": statement,
            "entry_point": ENTRY_POINT,
            "tests": [
                {"args": given, "expected": wanted, "compare": "float", "visible": i < VISIBLE}
                for i, (given, wanted) in enumerate(cases)
            ],
        }
    )


async def build_file(source: Path, output: Path, *, limit: int | None, concurrency: int) -> dict[str, int]:
    """Read ``source``, write a suite to ``output``; how many problems became tasks and how many did not."""
    records = read_records(source)[:limit]
    sandbox = Sandbox(concurrency=concurrency)
    try:
        tasks, skipped = await build(records, sandbox)
    finally:
        await sandbox.close()
    if not tasks:
        raise DomainError(f"{source}: no record became a task; the first: {skipped[0].reason if skipped else 'empty'}")
    document = {"name": "codeio", "tasks": [task.model_dump(mode="json") for task in tasks]}
    output.write_text(json.dumps(document), encoding="utf-8")
    return {"tasks": len(tasks), "skipped": len(skipped)}


def main(
    source: Annotated[Path, typer.Argument(help="reasoning-gym's codeio.jsonl.gz.")],
    output: Annotated[Path, typer.Argument(help="The suite to write (JSON).")],
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many records.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Jails at once.")] = 2,
) -> None:
    """Turn reasoning-gym's reference functions into a suite of tests tasks."""
    try:
        counts = asyncio.run(build_file(source, output, limit=limit, concurrency=concurrency))
    except DomainError as error:
        raise typer.BadParameter(str(error)) from None
    print(f"wrote {counts['tasks']} tasks to {output}; {counts['skipped']} records left out")


if __name__ == "__main__":
    typer.run(main)
