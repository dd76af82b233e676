"""OpenEvolve evaluators: what goes into the jail with them, and how what they say is read outside."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib import resources
from pathlib import PurePosixPath
from typing import Any

from sandbox.cases import EvaluatorResult
from sandbox.grading import UnreadableError, broken, clip, judge_ending, judge_error, read_answer, verdict
from sandbox.inside.supervisor import SCRATCH
from sandbox.jail.bubblewrap import PACKAGES, package_folders
from sandbox.jail.interpreter import running_interpreter
from sandbox.jail.launcher import Job, Report
from sandbox.limits import Limits
from sandbox.verdict import Status

EVALUATOR_LIMITS = Limits(wall_s=60, cpu_s=60, memory_mb=2048, processes=64, output_kb=1024, tmpfs_mb=128)
NAME = "evaluate"
TASK, SHIM, CANDIDATE = "/task", "/shim", "/candidate"
ANSWER_BYTES = 4 << 20
DROPPED = "dropped_metrics"
TAIL_CHARS = 4000


def evaluator_job(source: str, files: Mapping[str, str | bytes], suffix: str, limits: Limits, *, packages: bool) -> Job:
    """The job of one evaluation. Raises :class:`ValueError` naming the file or setting that cannot be used."""
    if "evaluator.py" not in files:
        raise ValueError(f"files has no 'evaluator.py'; it has {', '.join(sorted(files)) or 'nothing'}")
    if "/" in suffix or "\0" in suffix or len(suffix) > 20:
        raise ValueError(f"suffix is {suffix!r}; use a file name's ending such as '.py'")
    candidate = f"{CANDIDATE}/program{suffix}"
    mounted = {f"{TASK}/{_checked(name)}": _encoded(data) for name, data in files.items()}
    mounted |= {f"{SHIM}/openevolve/{name}": data for name, data in _shim().items()}
    mounted[candidate] = _encoded(source)
    payload = {
        "tests": [{"stdin": b"", "candidate": candidate}],
        "answer_bytes": ANSWER_BYTES,
        "keep_going": True,
        "preload": [],
        "environment": _environment(packages=packages),
    }
    return Job(harness="evaluation", payload=payload, limits=limits, files=mounted, packages=packages)


def judge_evaluation(report: Report | str, limits: Limits) -> EvaluatorResult:
    """Read what the evaluator said; a text instead of a report is why the jail broke."""
    if isinstance(report, str):
        return EvaluatorResult(verdict=broken(NAME, report))
    failed = judge_ending(NAME, report, limits)
    if failed is None:
        try:
            answer = read_answer(report)
            if "metrics" in answer:
                return _read_metrics(answer, report)
            failed = judge_error(NAME, report, answer)
        except UnreadableError as problem:
            failed = verdict(NAME, report, Status.ERROR, str(problem))
    return EvaluatorResult(verdict=failed, artifacts=_tails(report))


def _read_metrics(answer: dict[str, Any], report: Report) -> EvaluatorResult:
    metrics, artifacts = answer.get("metrics"), answer.get("artifacts")
    if not isinstance(metrics, dict) or not isinstance(artifacts, dict):
        raise UnreadableError("the evaluator wrote an answer that cannot be read")
    kept = {name: float(value) for name, value in metrics.items() if _is_finite(value)}
    texts = {name: value for name, value in artifacts.items() if isinstance(value, str)}
    dropped = {name: value for name, value in metrics.items() if name not in kept}
    if dropped:
        shown = ", ".join(f"{name}={json.dumps(value)}" for name, value in dropped.items())
        texts[DROPPED] = clip(shown, TAIL_CHARS)
    if kept:
        return EvaluatorResult(verdict=verdict(NAME, report, Status.PASSED), metrics=kept, artifacts=texts)
    said = "; ".join(f"{name}: {texts[name]}" for name in (DROPPED, "error") if name in texts)
    message = "evaluate returned no finite metric" + (f" ({said})" if said else "")
    return EvaluatorResult(verdict=verdict(NAME, report, Status.ERROR, message), artifacts={**_tails(report), **texts})


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) <= 1.7e308 and math.isfinite(value)


def _tails(report: Report) -> dict[str, str]:
    streams = {"stdout": report.stdout, "stderr": report.stderr}
    return {name: data.decode("utf-8", "replace")[-TAIL_CHARS:] for name, data in streams.items() if data}


def _environment(*, packages: bool) -> dict[str, str]:
    python = PurePosixPath(running_interpreter().executable)
    folders = [f"{PACKAGES}/{number}" for number in range(len(package_folders()))] if packages else []
    one_thread = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    return {
        "HOME": SCRATCH,
        "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": SCRATCH,
        "PATH": f"{python.parent}:/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        # For interpreters that an evaluator starts itself, which many do.
        "PYTHONPATH": ":".join([TASK, SHIM, *folders]),
        "TZ": "UTC",
        **one_thread,
    }


def _shim() -> dict[str, bytes]:
    folder = resources.files("sandbox.inside").joinpath("openevolve")
    return {name: folder.joinpath(name).read_bytes() for name in ("__init__.py", "evaluation_result.py")}


def _checked(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name or not path.parts:
        raise ValueError(f"file name {name!r} must be a relative path without '..'")
    return str(path)


def _encoded(data: str | bytes) -> bytes:
    return data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
