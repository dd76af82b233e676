"""In the fork of an evaluation: load the task's evaluator, let it judge the candidate's file, write what it said.

The answer is one line of JSON per stage: ``{"stage", "metrics", "artifacts", "more"}`` or ``{"stage", "error"}`` with
the error as the harness describes it. A line is written as soon as its stage is over, so that what the first stages
said stands when a later one breaks. The evaluator is its owner's code but runs the candidate in its own process, so a
hostile candidate can forge what it says; what it cannot do is leave the jail. (Tests tasks do not have this weakness.)
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys

from sandbox.inside.harness import describe, encode, write_answer

TYPE_CHECKING = False  # importing it from typing would cost every jail 15 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType, ModuleType
    from typing import Any

TASK, SHIM, PACKAGES = "/task", "/shim", "/packages"
MAX_METRICS, MAX_ARTIFACTS, ARTIFACT_CHARS, NAME_CHARS = 256, 32, 8192, 200
WHOLE, STAGES = "evaluate", ("evaluate_stage1", "evaluate_stage2", "evaluate_stage3")


class StageTimeout(BaseException):
    """A stage took too long."""


def run_test(job: dict[str, Any], index: int, answer_fd: int) -> None:
    """Run the evaluator once, in one stage or several, and leave the process."""
    test = job["tests"][index]
    stage = WHOLE
    try:
        module = load_evaluator()
        for stage, function, arguments, passes in plan(module, test):
            said = flatten(timed(test["stage_s"], function, test["candidate"], arguments))
            more = passes is not None and passes(said["metrics"])
            write_answer(answer_fd, encode({"stage": stage, **said, "more": more}) + "\n")
            if not more:
                break
    except BaseException as error:
        described = {**describe(error, (TASK, "/candidate")), "timeout": isinstance(error, StageTimeout)}
        write_answer(answer_fd, encode({"stage": stage, "error": described}) + "\n")
    for stream in (sys.stdout, sys.stderr):
        try:  # noqa: SIM105 (whatever an evaluator did to its streams does not matter)
            stream.flush()
        except BaseException:
            pass
    os._exit(0)


def load_evaluator() -> ModuleType:
    """Import the task's evaluator as OpenEvolve does."""
    folders = sorted(os.listdir(PACKAGES)) if os.path.isdir(PACKAGES) else []
    sys.path[:0] = [TASK, SHIM]
    sys.path += [f"{PACKAGES}/{folder}" for folder in folders]
    spec = importlib.util.spec_from_file_location("evaluator", f"{TASK}/evaluator.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["evaluator"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plan(module: ModuleType, test: dict[str, Any]) -> Iterator[tuple[str, Any, dict[str, Any], Any]]:
    """Each stage's name, function and further arguments, and what decides whether another one follows, if any.

    Without thresholds or without ``evaluate_stage1`` that is ``evaluate`` alone. A stage is followed by the next one
    if there is one and the metrics of all stages so far reach the threshold that belongs to the stage.
    """
    thresholds = test["thresholds"]
    if not thresholds or not callable(getattr(module, STAGES[0], None)):
        function = getattr(module, WHOLE, None)
        if not callable(function):
            raise LookupError(f"evaluator.py defines no function {WHOLE!r}")
        yield WHOLE, function, test["arguments"], None
        return
    merged: dict[str, float] = {}
    for number, name in enumerate(STAGES):
        after = STAGES[number + 1 : number + 2]
        if number < len(thresholds) and after and callable(getattr(module, after[0], None)):
            yield name, getattr(module, name), {}, reaching(thresholds[number], merged)
        else:
            yield name, getattr(module, name), {}, None


def reaching(threshold: float, merged: dict[str, float]) -> Callable[[dict[str, float]], bool]:
    """Whether a stage's metrics, added to those of the stages before, are good enough to go on.

    What counts is ``combined_score`` or, without it, the mean of everything but ``error``.
    """

    def passes(metrics: dict[str, float]) -> bool:
        merged.update((name, value) for name, value in metrics.items() if name != "error")
        if "combined_score" in merged:
            return merged["combined_score"] >= threshold
        return bool(merged) and sum(merged.values()) / len(merged) >= threshold

    return passes


def timed(seconds: float | None, function: Callable[..., Any], candidate: str, arguments: dict[str, Any]) -> Any:
    """Call a stage, plain or async. A limit of its own is for stages that others follow; the jail has one anyway."""
    if arguments:
        check_arguments(function, candidate, arguments)
    if seconds is not None:

        def ring(number: int, frame: FrameType | None) -> None:
            raise StageTimeout(f"stopped after {seconds:g} s of wall-clock time")

        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        result = function(candidate, **arguments)
        if hasattr(result, "__await__"):
            import asyncio

            result = asyncio.run(wait(result))
    finally:
        if seconds is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
    return result


def check_arguments(function: Callable[..., Any], candidate: str, arguments: dict[str, Any]) -> None:
    """Raise a TypeError that names what is configured where the function does not take that."""
    import inspect

    try:
        inspect.signature(function).bind(candidate, **arguments)
    except TypeError as error:
        raise TypeError(f"evaluate does not take evaluator_args {', '.join(arguments)}: {error}") from None
    except ValueError:
        return  # it has no signature that could be read


async def wait(result: Any) -> Any:
    """What an awaitable gives."""
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
