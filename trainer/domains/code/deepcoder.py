"""DeepCoder's records (``agentica-org/DeepCoder-Preview-Dataset``) as tests tasks.

``problem`` is the statement and ``tests`` a JSON text (or the parsed value) in one of the forms of its sources: TACO's
``{"inputs": [...], "outputs": [...], "fn_name": ...}``; PrimeIntellect's list of ``{"type": "stdin_stdout" |
"function_call", "input", "output", "fn_name"}``; and LiveCodeBench's list of ``{"input", "output", "testtype"}`` with
``func_name`` in ``metadata``. Outputs of functions that come wrapped in a list of one are unwrapped, as the sources'
own judges do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from evolve.humaneval import Skipped
from evolve.strict import explain
from evolve.tests_task import TestsTask


def is_deepcoder(record: Any) -> bool:
    """Whether a record has DeepCoder's fields."""
    return isinstance(record, dict) and isinstance(record.get("problem"), str) and "tests" in record


def read_deepcoder(
    records: Iterable[Mapping[str, Any]], *, prefix: str, max_tests: int, visible: int
) -> tuple[list[TestsTask], list[Skipped]]:
    """Tasks named ``prefix-NUMBER``, and the records that could not become one.

    max_tests: of each problem, the first so many. visible: tests of those that prompts may show.
    """
    tasks, skipped = [], []
    for number, record in enumerate(records):
        name = f"{prefix}-{number}"
        try:
            tasks.append(_to_task(name, record, max_tests, visible))
        except ValidationError as error:
            skipped.append(Skipped(name=name, reason=explain(error)))
        except (KeyError, TypeError, ValueError, IndexError, RecursionError) as error:
            skipped.append(Skipped(name=name, reason=f"its tests cannot be read: {error!r}"))
    return tasks, skipped


def _to_task(name: str, record: Mapping[str, Any], max_tests: int, visible: int) -> TestsTask:
    cases = _cases(_parsed(record["tests"]), _parsed(record.get("metadata") or {}))
    functions = {function for function, _, _ in cases}
    if len(functions) != 1:
        raise ValueError(f"needs tests of one kind, found {sorted(map(str, functions)) or 'none'}")
    function = functions.pop()
    statement = record["problem"].strip()
    if function is not None and str(record.get("starter_code") or "").strip():
        statement += f"\n\nStart from:\n\n{record['starter_code'].strip()}"
    tests = [_test(function, given, wanted) for function, given, wanted in cases[:max_tests]]
    return TestsTask.model_validate(
        {
            "name": name,
            "statement": statement,
            "entry_point": function,
            "tests": [{**test, "visible": i < visible} for i, test in enumerate(tests)],
        }
    )


def _parsed(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _cases(tests: Any, metadata: Any) -> list[tuple[str | None, Any, Any]]:
    """(function or ``None`` for standard input, input, output) of each test."""
    if isinstance(tests, dict) and "inputs" in tests:
        pairs = zip(tests["inputs"], tests["outputs"], strict=True)
        return [(tests.get("fn_name"), given, _unwrapped(wanted, tests.get("fn_name"))) for given, wanted in pairs]
    found: list[tuple[str | None, Any, Any]] = []
    for test in tests if isinstance(tests, list) else [tests]:
        kind = test.get("type") or test.get("testtype") or "stdin"
        if kind == "function_call":
            found.append((test["fn_name"], test["input"], _unwrapped(test["output"], test["fn_name"])))
        elif kind == "functional":
            own = _parsed(test.get("metadata") or {})
            function = own.get("func_name") or metadata["func_name"]
            arguments = [json.loads(line) for line in test["input"].split("\n") if line.strip()]
            found.append((function, arguments, json.loads(test["output"])))
        else:
            found.append((None, test["input"], test["output"]))
    return found


def _unwrapped(output: Any, function: str | None) -> Any:
    return output[0] if function is not None and isinstance(output, list) and len(output) == 1 else output


def _test(function: str | None, given: Any, wanted: Any) -> dict[str, Any]:
    if function is None:
        return {"stdin": _text(given), "expected": _text(wanted)}
    return {"args": given if isinstance(given, list) else [given], "expected": wanted}


def _text(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)
