"""In the fork of an evaluation: load the task's evaluator, let it judge the candidate's file, write what it said.

The answer is ``{"metrics": {...}, "artifacts": {...}}`` or ``{"error": {...}}`` as the harness writes it. The evaluator
is its owner's code but runs the candidate in its own process, so a hostile candidate can forge what it says; what it
cannot do is leave the jail. (Tests tasks do not have this weakness.)
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import os
import sys
from typing import Any

from sandbox.inside.harness import describe, encode, write_answer

TASK, SHIM, PACKAGES = "/task", "/shim", "/packages"
MAX_METRICS, MAX_ARTIFACTS, ARTIFACT_CHARS, NAME_CHARS = 256, 32, 8192, 200


def run_test(job: dict[str, Any], index: int, answer_fd: int) -> None:
    """Run the evaluator once and leave the process."""
    try:
        answer = encode(flatten(evaluate(job["tests"][index]["candidate"])))
    except BaseException as error:
        answer = encode({"error": describe(error, (TASK, "/candidate"))})
    for stream in (sys.stdout, sys.stderr):
        try:  # noqa: SIM105 (whatever an evaluator did to its streams does not matter)
            stream.flush()
        except BaseException:
            pass
    write_answer(answer_fd, answer)
    os._exit(0)


def evaluate(candidate: str) -> Any:
    """Call ``evaluate(path)``, plain or async, as OpenEvolve does."""
    folders = sorted(os.listdir(PACKAGES)) if os.path.isdir(PACKAGES) else []
    sys.path[:0] = [TASK, SHIM]
    sys.path += [f"{PACKAGES}/{folder}" for folder in folders]
    spec = importlib.util.spec_from_file_location("evaluator", f"{TASK}/evaluator.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["evaluator"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, "evaluate", None)
    if not callable(function):
        raise LookupError("evaluator.py defines no function 'evaluate'")
    result = function(candidate)
    return asyncio.run(_wait(result)) if inspect.isawaitable(result) else result


async def _wait(result: Any) -> Any:
    return await result


def flatten(result: Any) -> dict[str, Any]:
    """Metrics that are numbers; everything else that was said as text."""
    metrics, artifacts = result, getattr(result, "artifacts", None) or {}
    if not isinstance(result, dict):
        metrics = getattr(result, "metrics", None)
    if not isinstance(metrics, dict) or not isinstance(artifacts, dict):
        raise TypeError(f"evaluate returned a {type(result).__name__}, not a dict of metrics or an EvaluationResult")
    numbers: dict[str, float] = {}
    texts = {str(name)[:NAME_CHARS]: text(value) for name, value in list(artifacts.items())[:MAX_ARTIFACTS]}
    for name, value in list(metrics.items())[:MAX_METRICS]:
        number = as_number(value)
        if number is not None:
            numbers[str(name)[:NAME_CHARS]] = number
        elif len(texts) < MAX_ARTIFACTS:
            texts.setdefault(str(name)[:NAME_CHARS], text(value))
    return {"metrics": numbers, "artifacts": texts}


def as_number(value: Any) -> float | None:
    """A float, also of NumPy's and PyTorch's scalars; ``None`` for what is no number."""
    if value is None or isinstance(value, str | bytes):
        return None
    try:
        return float(value)
    except OverflowError:
        return float("inf")
    except (TypeError, ValueError):
        return None


def text(value: Any) -> str:
    """A bounded text."""
    shown = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return shown[:ARTIFACT_CHARS]
