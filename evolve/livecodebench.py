"""LiveCodeBench's JSON lines as tests tasks, and its split by contest date.

Tests are ``stdin`` (standard input and output) or ``functional`` (each line of the input a JSON argument of a method of
``class Solution``). A functional problem becomes a task with that method's name as entry point, and asks for a plain
function. Where ``stdin`` tests expect numbers with a fraction, numbers are compared by value, as the benchmark does;
and as it does, common names of the standard library are imported before every candidate.

Private tests are JSON, or base64 of zlib of a *pickle of a JSON string*. Unpickling runs whatever a file tells it to,
so nothing is unpickled here: the pickle's operations are listed without executing any, and anything but one plain
string is refused.
"""

from __future__ import annotations

import base64
import binascii
import json
import pickletools
import re
import zlib
from collections.abc import Iterable
from datetime import date, datetime
from typing import Any

from pydantic import ValidationError

from evolve.humaneval import Skipped
from evolve.strict import explain
from evolve.tests_task import TestsTask

MAX_PRIVATE_BYTES = 512 << 20
PREAMBLE = """\
import bisect, collections, functools, heapq, itertools, math, operator, re, string, sys
from bisect import *
from collections import *
from functools import *
from heapq import *
from itertools import *
from math import *
from typing import *
"""
_FIELDS = ("question_id", "question_content", "public_test_cases", "private_test_cases", "contest_date")
_STRING = {"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"}
_HARMLESS = {"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"}
_CLASS = re.compile(r"^\s*class Solution\b.*$", re.MULTILINE)


class UnreadableTests(ValueError):  # noqa: N818 (says what it found)
    """A problem's tests are not in LiveCodeBench's format; the message says what was found."""


def is_livecodebench(record: Any) -> bool:
    """Whether a record has LiveCodeBench's fields."""
    return isinstance(record, dict) and all(isinstance(record.get(name), str) for name in _FIELDS)


def contest_date(record: dict[str, Any]) -> date:
    """When the problem was published. Raises :class:`UnreadableTests`."""
    try:
        return datetime.fromisoformat(record["contest_date"]).date()
    except ValueError:
        raise UnreadableTests(f"contest_date is {record['contest_date']!r}, not a date in ISO format") from None


def read_livecodebench(
    records: Iterable[Any], *, since: date | None = None, before: date | None = None, max_tests: int | None = None
) -> tuple[list[TestsTask], list[Skipped]]:
    """Tasks, and the problems that could not become one.

    since, before: only problems published on or after, and before these days. max_tests: keep the public tests and the
    first private ones up to so many in all; ``None`` keeps all.
    """
    tasks: list[TestsTask] = []
    skipped: list[Skipped] = []
    for number, record in enumerate(records):
        if not is_livecodebench(record):
            skipped.append(Skipped(name=f"record {number}", reason=f"needs the fields {', '.join(_FIELDS)}"))
            continue
        try:
            day = contest_date(record)
            if (since is None or day >= since) and (before is None or day < before):
                tasks.append(to_task(record, max_tests=max_tests))
        except UnreadableTests as error:
            skipped.append(Skipped(name=record["question_id"], reason=str(error)))
        except ValidationError as error:
            skipped.append(Skipped(name=record["question_id"], reason=explain(error)))
    return tasks, skipped


def to_task(record: dict[str, Any], *, max_tests: int | None = None) -> TestsTask:
    """One problem; its public tests are visible. Raises :class:`UnreadableTests`, or pydantic's ``ValidationError``."""
    public, private = read_tests(record["public_test_cases"]), read_tests(record["private_test_cases"])
    room = None if max_tests is None else max(0, max_tests - len(public))
    tests = [*((test, True) for test in public), *((test, False) for test in private[:room])]
    if not tests:
        raise UnreadableTests("the problem has no tests")
    kinds = {test["testtype"] for test, _ in tests}
    if len(kinds) != 1:
        raise UnreadableTests(f"the tests are of several kinds: {', '.join(sorted(kinds))}")
    function = _function_name(record) if kinds == {"functional"} else None
    return TestsTask.model_validate(
        {
            "name": record["question_id"],
            "statement": _statement(record, function),
            "entry_point": function,
            "preamble": PREAMBLE,
            "tests": [{**_test(test, function), "visible": visible} for test, visible in tests],
        }
    )


def read_tests(text: str) -> list[dict[str, str]]:
    """Test cases (``input``, ``output``, ``testtype``) from a field of either form. Raises :class:`UnreadableTests`."""
    try:
        cases = json.loads(text if text.lstrip().startswith("[") else unpack(text))
    except (ValueError, RecursionError) as error:
        raise UnreadableTests(f"the test cases are not JSON: {error}") from None
    if not isinstance(cases, list):
        raise UnreadableTests("the test cases are not a list")
    for case in cases:
        known = isinstance(case, dict) and case.get("testtype") in ("stdin", "functional")
        if not known or not isinstance(case.get("input"), str) or not isinstance(case.get("output"), str):
            raise UnreadableTests("a test case needs input, output and testtype 'stdin' or 'functional'")
    return cases


def unpack(text: str) -> str:
    """The string inside base64 of zlib of a pickle. Raises :class:`UnreadableTests`; never runs the pickle."""
    try:
        packed = base64.b64decode(text, validate=True)
        reader = zlib.decompressobj()
        data = reader.decompress(packed, MAX_PRIVATE_BYTES)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise UnreadableTests(f"the private tests are not base64 of zlib: {error}") from None
    if not reader.eof:
        raise UnreadableTests(f"the private tests are cut off, or hold more than {MAX_PRIVATE_BYTES >> 20} MiB")
    return string_of_pickle(data)


def string_of_pickle(data: bytes) -> str:
    """The string that ``data`` is the pickle of. Raises :class:`UnreadableTests` for any other pickle."""
    found: list[str] = []
    try:
        for operation, argument, _ in pickletools.genops(data):
            if operation.name in _STRING:
                found.append(str(argument))
            elif operation.name not in _HARMLESS:
                raise UnreadableTests(f"the pickle holds more than one string (operation {operation.name}): refused")
    except UnreadableTests:
        raise
    except Exception as error:  # whatever a broken file makes the lister raise
        raise UnreadableTests(f"the pickle is broken: {error}") from None
    if len(found) != 1:
        raise UnreadableTests(f"the pickle holds {len(found)} strings, not one: refused")
    return found[0]


def _function_name(record: dict[str, Any]) -> str:
    try:
        name = json.loads(record.get("metadata") or "{}")["func_name"]
    except (ValueError, KeyError, TypeError):
        raise UnreadableTests("metadata needs func_name for functional tests") from None
    return str(name)


def _statement(record: dict[str, Any], function: str | None) -> str:
    title, content = record.get("question_title") or "", record["question_content"].strip()
    parts = [f"{title}\n\n{content}" if title else content]
    starter = (record.get("starter_code") or "").strip()
    if function is not None and starter:
        parts.append(f"Write it as a plain function, without a class:\n\n{_as_function(starter)}")
    return "\n\n".join(parts)


def _as_function(starter: str) -> str:
    """A method of ``class Solution`` as a function with the same parameters."""
    lines = [line.strip() for line in _CLASS.sub("", starter).splitlines() if line.strip()]
    return "\n".join(re.sub(r"\(\s*self\s*,?\s*", "(", line) for line in lines)


def _test(case: dict[str, str], function: str | None) -> dict[str, Any]:
    if function is None:
        numeric = any("." in word and _is_number(word) for word in case["output"].split())
        comparison = {"compare": "float", "tolerance": 0.0} if numeric else {}
        return {"stdin": case["input"], "expected": case["output"], **comparison}
    try:
        arguments = [json.loads(line) for line in case["input"].split("\n") if line.strip()]
        return {"args": arguments, "expected": json.loads(case["output"])}
    except (ValueError, RecursionError) as error:
        raise UnreadableTests(f"a functional test is not JSON: {error}") from None


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
