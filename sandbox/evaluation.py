"""OpenEvolve evaluators: what goes into the jail with them, and how what they say is read outside."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any

from sandbox.cases import EvaluatorResult
from sandbox.environment import offered_folders, require_packages
from sandbox.grading import UnreadableError, broken, clip, judge_ending, judge_error, read_answer, verdict
from sandbox.inside.supervisor import SCRATCH
from sandbox.jail.bubblewrap import PACKAGES, package_folders
from sandbox.jail.interpreter import running_interpreter
from sandbox.jail.launcher import Job, Report
from sandbox.limits import Limits
from sandbox.verdict import Status, Verdict

EVALUATOR_LIMITS = Limits(wall_s=60, cpu_s=60, memory_mb=2048, processes=64, output_kb=1024, tmpfs_mb=128)
NAME = "evaluate"
TASK, SHIM, CANDIDATE, DATA = "/task", "/shim", "/candidate", "/data"
STAGE = re.compile(rb"^(?:async[ \t]+)?def[ \t]+evaluate_stage[123]\b", re.MULTILINE)
ANSWER_BYTES = 4 << 20
DROPPED = "dropped_metrics"
TAIL_CHARS = 4000


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluatorSettings:
    """How an evaluator is called, and what it finds in its jail.

    thresholds: of a cascade: ``evaluate_stage1`` runs first, ``evaluate_stage2`` if the first threshold is reached by
    ``combined_score`` (else by the mean of the metrics), ``evaluate_stage3`` likewise after the second. Each stage may
    take as long as the limits say. Empty, or where there is no ``evaluate_stage1``: ``evaluate`` alone.
    arguments: keyword arguments of ``evaluate``.
    packages: whether this environment's installed packages are visible. required: names of those it cannot do without.
    folders: what else is visible, read-only, as ``/data/NAME``: names of folders that the sandbox offers.
    """

    thresholds: tuple[float, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    packages: bool = True
    required: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


def evaluator_job(
    source: str | Mapping[str, str],
    files: Mapping[str, str | bytes],
    suffix: str,
    limits: Limits,
    settings: EvaluatorSettings,
    offered: Mapping[str, Path],
) -> Job:
    """The job of one evaluation. offered: the folders that tasks may ask for, by name.

    source: a program or, by path, its files: ``evaluate`` then gets the path of a folder, and suffix does not matter.
    Raises :class:`ValueError` naming the file or setting that cannot be used, and
    :class:`~sandbox.errors.EnvironmentUnavailable` for what is not there.
    """
    require_packages(settings.required)
    if "evaluator.py" not in files:
        raise ValueError(f"files has no 'evaluator.py'; it has {', '.join(sorted(files)) or 'nothing'}")
    if "/" in suffix or "\0" in suffix or len(suffix) > 20:
        raise ValueError(f"suffix is {suffix!r}; use a file name's ending such as '.py'")
    candidate = f"{CANDIDATE}/program{suffix if isinstance(source, str) else ''}"
    mounted = {f"{TASK}/{_checked(name)}": _encoded(data) for name, data in files.items()}
    mounted |= {f"{SHIM}/openevolve/{name}": data for name, data in _shim().items()}
    mounted |= _candidate_files(source, candidate)
    stages = len(STAGE.findall(mounted[f"{TASK}/evaluator.py"])) if settings.thresholds else 0
    test = {
        "stdin": b"",
        "candidate": candidate,
        "thresholds": list(settings.thresholds),
        "arguments": dict(settings.arguments),
        "stage_s": float(limits.wall_s) if stages > 1 else None,
    }
    payload = {
        "tests": [test],
        "answer_bytes": ANSWER_BYTES,
        "keep_going": True,
        "preload": [],
        "environment": _environment(packages=settings.packages),
    }
    # The stages' own clocks bound each of them; this one is for stages that escape theirs.
    limits = replace(limits, wall_s=limits.wall_s * max(1, stages), cpu_s=limits.cpu_s * max(1, stages))
    mounts = {f"{DATA}/{_checked(name)}": path for name, path in offered_folders(settings.folders, offered).items()}
    return Job(
        harness="evaluation",
        payload=payload,
        limits=limits,
        files=mounted,
        mounts=mounts,
        packages=settings.packages,
    )


def _candidate_files(source: str | Mapping[str, str], candidate: str) -> dict[str, bytes]:
    if isinstance(source, str):
        return {candidate: _encoded(source)}
    if not source:
        raise ValueError("the program has no files: give at least one")
    return {f"{candidate}/{_checked(name)}": _encoded(text) for name, text in source.items()}


def judge_evaluation(report: Report | str, limits: Limits) -> EvaluatorResult:
    """Read what the evaluator said, stage by stage; a text instead of a report is why the jail broke.

    A cascade that breaks at a later stage keeps what the earlier ones said: its result has the metric
    ``stageN_passed`` 0 and the artifacts ``failure_stage`` and ``stageN_error``.
    """
    if isinstance(report, str):
        return EvaluatorResult(verdict=broken(NAME, report))
    failed = judge_ending(NAME, report, limits)
    stages: list[dict[str, Any]] = []
    try:
        for line in report.answer.splitlines():
            said = read_answer(replace(report, answer=line))
            if not isinstance(said.get("metrics"), dict) or not isinstance(said.get("artifacts"), dict):
                failed = failed or _judge_error(report, said)
                break
            stages.append(said)
        if not report.answer:
            read_answer(report)
    except UnreadableError as problem:
        failed = failed or verdict(NAME, report, Status.ERROR, str(problem))
    if failed is not None and not (stages and stages[-1].get("more") is True):
        return EvaluatorResult(verdict=failed, artifacts=_tails(report))
    metrics, artifacts = _merged(stages)
    if failed is not None:
        stage = f"stage{len(stages) + 1}"
        metrics[f"{stage}_passed"] = 0.0
        artifacts |= {"failure_stage": stage, f"{stage}_error": failed.message, **_tails(report)}
    return _result(metrics, artifacts, report)


def _judge_error(report: Report, said: dict[str, Any]) -> Verdict:
    error = said.get("error")
    if isinstance(error, dict) and error.get("timeout") is True:
        return verdict(NAME, report, Status.TIMEOUT, str(error.get("message")))
    return judge_error(NAME, report, said)


def _merged(stages: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, str]]:
    """The metrics and artifacts of all stages, later ones first where names are the same."""
    merged: tuple[dict[str, Any], dict[str, str]] = ({}, {})
    for said in stages:
        merged[0].update(said["metrics"])
        merged[1].update((name, text) for name, text in said["artifacts"].items() if isinstance(text, str))
    if len(stages) > 1:
        merged[0].pop("error", None)
    return merged


def _result(metrics: dict[str, Any], texts: dict[str, str], report: Report) -> EvaluatorResult:
    kept = {name: float(value) for name, value in metrics.items() if _is_finite(value)}
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
