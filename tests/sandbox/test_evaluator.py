"""OpenEvolve's evaluators in the jail."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from sandbox import EnvironmentUnavailable, EvaluatorResult, EvaluatorSettings, Limits, Sandbox, Status

PROGRAM = "def area(r):\n    print('noise')\n    return 3 * r * r\n"
LOAD = """
import importlib.util

def load(path):
    spec = importlib.util.spec_from_file_location("program", path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program
"""


async def evaluate(sandbox: Sandbox, evaluator: str, **options: object) -> EvaluatorResult:
    files = {"evaluator.py": LOAD + evaluator, "data/points.txt": "1 2 3", "blob.bin": b"\x00\xff"}
    return await sandbox.run_evaluator(PROGRAM, files, **options)  # type: ignore[arg-type]


async def test_a_plain_evaluator(sandbox: Sandbox) -> None:
    result = await evaluate(sandbox, "def evaluate(path): return {'score': load(path).area(2), 'valid': True}")

    assert result.verdict.status is Status.PASSED, result
    assert result.metrics == {"score": 12.0, "valid": 1.0}
    assert result.artifacts == {}


async def test_async_numpy_artifacts_and_the_import_shim(sandbox: Sandbox) -> None:
    evaluator = """
import asyncio
import numpy as np
from openevolve.evaluation_result import EvaluationResult

async def evaluate(path):
    await asyncio.sleep(0)
    print("x" * 3_000_000)
    score = np.float64(load(path).area(np.arange(3.0)).sum())
    return EvaluationResult(metrics={"score": score}, artifacts={"log": "fine", "raw": b"ok\\xff"})
"""
    result = await evaluate(sandbox, evaluator)

    assert result.verdict.status is Status.PASSED, result
    assert result.metrics == {"score": 15.0}
    assert result.artifacts == {"log": "fine", "raw": "ok�"}


async def test_what_is_no_finite_number_is_dropped_and_named(sandbox: Sandbox) -> None:
    evaluator = """
def evaluate(path):
    return {"a": -1.5, "b": float("nan"), "c": float("-inf"), "d": 10**400, "e": "why", "f": None, "g": [1]}
"""
    result = await evaluate(sandbox, evaluator)

    assert result.metrics == {"a": -1.5}
    assert all(math.isfinite(value) for value in result.metrics.values())
    assert result.artifacts.pop("dropped_metrics") == "b=NaN, c=-Infinity, d=Infinity"
    assert result.artifacts == {"e": "why", "f": "None", "g": "[1]"}


@pytest.mark.parametrize(
    ("evaluator", "status", "message"),
    [
        ("def evaluate(path): return {'a': float('nan')}", Status.ERROR, "no finite metric"),
        ("def evaluate(path): return {'error': 'broken'}", Status.ERROR, "error: broken"),
        ("def evaluate(path): return 3", Status.ERROR, "returned a int, not a dict"),
        ("def evaluate(path): raise ValueError('bad')", Status.ERROR, "ValueError: bad (evaluator.py line"),
        ("def evaluate(path): load(path).area('x')", Status.ERROR, "TypeError: can't multiply sequence by non-int of"),
        ("def judge(path): pass", Status.ERROR, "evaluator.py defines no function 'evaluate'"),
        ("def evaluate(path): exit(4)", Status.ERROR, "SystemExit: the program exited with status 4"),
        ("import time\ndef evaluate(path): time.sleep(60)", Status.TIMEOUT, "stopped after 2 s"),
        ("def evaluate(path): return {'a': len(bytearray(1 << 30))}", Status.MEMORY, "MemoryError"),
        ("import os\ndef evaluate(path): os._exit(0)", Status.ERROR, "ended without an answer"),
    ],
)
async def test_every_way_to_fail_has_its_reason(evaluator: str, status: Status, message: str, sandbox: Sandbox) -> None:
    result = await evaluate(sandbox, evaluator, limits=Limits(wall_s=2, cpu_s=2, memory_mb=512))

    assert result.verdict.status is status, result
    assert message in result.verdict.message
    assert result.metrics == {}


async def test_a_failure_shows_what_was_printed(sandbox: Sandbox) -> None:
    evaluator = "import sys\ndef evaluate(path):\n    print('to out')\n    print('to err', file=sys.stderr)\n    1 / 0"

    result = await evaluate(sandbox, evaluator)

    assert result.artifacts == {"stdout": "to out\n", "stderr": "to err\n"}


async def test_its_folder_is_whole_and_read_only(sandbox: Sandbox) -> None:
    evaluator = """
import os
from pathlib import Path

def evaluate(path):
    here = Path(__file__).parent
    writes = 0
    for target in [here / "evaluator.py", here / "new", here / "data/points.txt", Path(path), Path(path + "x")]:
        try:
            os.chmod(target, 0o666)
        except OSError:
            pass
        try:
            target.write_text("mine")
            writes += 1
        except OSError:
            pass
    Path("scratch").write_text("allowed")
    read = (here / "data/points.txt").read_text() == "1 2 3" and (here / "blob.bin").read_bytes() == b"\\0\\xff"
    return {"writes": writes, "read": read, "suffix": path.endswith(".txt")}
"""
    result = await evaluate(sandbox, evaluator, suffix=".txt")

    assert result.metrics == {"writes": 0.0, "read": 1.0, "suffix": 1.0}, result


async def test_interpreters_that_it_starts_see_the_same(sandbox: Sandbox) -> None:
    evaluator = """
import subprocess, sys

def evaluate(path):
    code = "import numpy, openevolve.evaluation_result; print(numpy.ones(3).sum())"
    for python in (sys.executable, "python3"):
        done = subprocess.run([python, "-c", code], capture_output=True, text=True)
        assert done.stdout == "3.0\\n", done
    return {"ok": 1}
"""
    result = await evaluate(sandbox, evaluator)

    assert result.verdict.passed, result


async def test_packages_only_when_asked_for(sandbox: Sandbox) -> None:
    evaluator = "import importlib.util\ndef evaluate(path): return {'n': importlib.util.find_spec('numpy') is not None}"

    assert (await evaluate(sandbox, evaluator, settings=EvaluatorSettings(packages=False))).metrics == {"n": 0.0}
    assert (await evaluate(sandbox, evaluator)).metrics == {"n": 1.0}


async def test_it_is_as_confined_as_a_candidate(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VPO_SECRET", "hush")
    evaluator = """
import os, socket

def evaluate(path):
    try:
        socket.socket(socket.AF_INET)
        network = 1
    except OSError:
        network = 0
    return {"root": os.getuid() == 0, "network": network, "secret": "hush" in repr(os.environ)}
"""
    result = await evaluate(sandbox, evaluator)

    assert result.metrics == {"root": 0.0, "network": 0.0, "secret": 0.0}


@pytest.mark.parametrize(
    ("files", "suffix", "message"),
    [
        ({"other.py": ""}, ".py", "files has no 'evaluator.py'; it has other.py"),
        ({"evaluator.py": "", "../up": ""}, ".py", "file name '../up' must be a relative path"),
        ({"evaluator.py": "", "/etc/passwd": ""}, ".py", "file name '/etc/passwd' must be a relative path"),
        ({"evaluator.py": ""}, "/../x", "suffix is '/../x'"),
    ],
)
async def test_unusable_files_are_refused(files: dict[str, str], suffix: str, message: str, sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match=message):
        await sandbox.run_evaluator("", files, suffix)


CASCADE = """
SEEN = []

def evaluate_stage1(path):
    SEEN.append(1)
    return {"quick": QUICK, "error": 0.0, "shared": 1}

async def evaluate_stage2(path):
    from openevolve.evaluation_result import EvaluationResult
    SEEN.append(2)
    STAGE2
    return EvaluationResult({"slow": 0.9, "shared": 2}, {"log": "second", "note": "two"})

def evaluate_stage3(path):
    return {"stages": len(SEEN), "note": "three"}

def evaluate(path):
    return {"whole": 1}
"""


async def cascade(
    sandbox: Sandbox, thresholds: tuple[float, ...], stage2: str = "pass", **options: object
) -> EvaluatorResult:
    source = CASCADE.replace("STAGE2", stage2).replace("QUICK", "load(path).area(0.5)")  # 0.75
    return await evaluate(sandbox, source, settings=EvaluatorSettings(thresholds=thresholds), **options)


@pytest.mark.parametrize(
    ("thresholds", "metrics"),
    [
        ((), {"whole": 1.0}),
        ((0.9,), {"quick": 0.75, "shared": 1.0, "error": 0.0}),
        ((0.8,), {"quick": 0.75, "shared": 2.0, "slow": 0.9}),
        ((0.8, 1.3), {"quick": 0.75, "shared": 2.0, "slow": 0.9}),
        ((0.8, 1.2, 5.0), {"quick": 0.75, "shared": 2.0, "slow": 0.9, "stages": 2.0}),
    ],
)
async def test_stages_follow_one_another_while_thresholds_are_reached(
    thresholds: tuple[float, ...], metrics: dict[str, float], sandbox: Sandbox
) -> None:
    result = await cascade(sandbox, thresholds)

    assert result.verdict.passed, result
    assert result.metrics == metrics


async def test_artifacts_of_all_stages_are_kept(sandbox: Sandbox) -> None:
    assert (await cascade(sandbox, (0.0, 0.0))).artifacts == {"log": "second", "note": "three"}


async def test_the_combined_score_decides_where_there_is_one(sandbox: Sandbox) -> None:
    source = "def evaluate_stage1(path): return {'combined_score': SCORE, 'big': 100}\n"
    source += "def evaluate_stage2(path): return {'second': 1}\ndef evaluate(path): return {}"
    settings = EvaluatorSettings(thresholds=(0.5,))

    high = await evaluate(sandbox, source.replace("SCORE", "0.5"), settings=settings)
    low = await evaluate(sandbox, source.replace("SCORE", "0.4"), settings=settings)
    nan = await evaluate(sandbox, source.replace("SCORE", "float('nan')"), settings=settings)

    assert set(high.metrics) == {"combined_score", "big", "second"}
    assert set(low.metrics) == {"combined_score", "big"}
    assert (nan.metrics, nan.artifacts) == ({"big": 100.0}, {"dropped_metrics": "combined_score=NaN"})


@pytest.mark.parametrize(
    ("stage2", "message"),
    [
        ("raise ValueError('too hard')", "ValueError: too hard (evaluator.py line"),
        ("import time; time.sleep(60)", "stopped after 1 s of wall-clock time"),
        ("import os; os._exit(3)", "the program exited with status 3"),
        ("import os; os.kill(os.getpid(), 11)", "SIGSEGV"),
        ("return len(bytearray(1 << 30))", "MemoryError"),
        ("return 3", "returned a int, not a dict"),
    ],
)
async def test_a_stage_that_breaks_leaves_what_the_earlier_ones_said(
    stage2: str, message: str, sandbox: Sandbox
) -> None:
    result = await cascade(sandbox, (0.0, 0.0), stage2, limits=Limits(wall_s=1, cpu_s=5, memory_mb=512))

    assert result.verdict.passed
    assert result.metrics == {"quick": 0.75, "shared": 1.0, "error": 0.0, "stage2_passed": 0.0}
    assert result.artifacts["failure_stage"] == "stage2"
    assert message in result.artifacts["stage2_error"]


async def test_a_first_stage_that_breaks_is_a_failure(sandbox: Sandbox) -> None:
    source = (
        "import time\ndef evaluate_stage1(path):\n    BODY\ndef evaluate_stage2(path): pass\ndef evaluate(path): pass"
    )
    settings, limits = EvaluatorSettings(thresholds=(0.5,)), Limits(wall_s=1, memory_mb=512)

    slow = await evaluate(sandbox, source.replace("BODY", "time.sleep(60)"), settings=settings, limits=limits)
    bad = await evaluate(sandbox, source.replace("BODY", "1 / 0"), settings=settings, limits=limits)

    assert (slow.verdict.status, slow.metrics) == (Status.TIMEOUT, {})
    assert slow.verdict.message == "stopped after 1 s of wall-clock time"
    assert (bad.verdict.status, bad.metrics) == (Status.ERROR, {})


async def test_a_stage_that_escapes_its_own_clock_is_stopped_by_the_jails(sandbox: Sandbox) -> None:
    stage2 = "import signal, time; signal.signal(signal.SIGALRM, signal.SIG_IGN); time.sleep(60)"

    result = await cascade(sandbox, (0.0,), stage2, limits=Limits(wall_s=1, memory_mb=512))

    assert result.artifacts["stage2_error"] == "stopped after 3 s of wall-clock time"
    assert result.metrics["stage2_passed"] == 0.0


async def test_arguments_reach_evaluate(sandbox: Sandbox) -> None:
    settings = EvaluatorSettings(arguments={"scale": 2.5, "names": ["a"]})

    fits = await evaluate(
        sandbox, "def evaluate(path, names=(), *, scale=1): return {n: scale for n in names}", settings=settings
    )
    anything = await evaluate(sandbox, "def evaluate(path, **more): return {'count': len(more)}", settings=settings)
    refused = await evaluate(sandbox, "def evaluate(path, scale=1): return {'a': scale}", settings=settings)
    alone = await evaluate(sandbox, "def evaluate(path, scale=1): return {'a': scale}")

    assert fits.metrics == {"a": 2.5}
    assert anything.metrics == {"count": 2.0}
    assert "evaluate does not take evaluator_args scale, names" in refused.verdict.message
    assert alone.metrics == {"a": 1.0}


async def test_folders_of_the_machine_are_visible_and_read_only(tmp_path: Path) -> None:
    folder = tmp_path / "folder"  # pytest's own is closed to everybody else
    folder.mkdir(mode=0o755)
    (folder / "table.csv").write_text("1,2\n", encoding="utf-8")
    evaluator = """
def evaluate(path):
    try:
        open("/data/tables/new", "w")
        written = 1
    except OSError:
        written = 0
    return {"size": len(open("/data/tables/table.csv").read()), "written": written}
"""
    async with Sandbox(folders={"tables": folder}) as sandbox:
        result = await evaluate(sandbox, evaluator, settings=EvaluatorSettings(folders=("tables",)))

    assert result.metrics == {"size": 4.0, "written": 0.0}, result


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            EvaluatorSettings(required=("numpy", "no-such-thing")),
            "Python package no-such-thing not installed. Fix: uv pip",
        ),
        (EvaluatorSettings(required=("no.such", "-")), "Python packages no.such, - not installed"),
        (
            EvaluatorSettings(folders=("other",)),
            "folder 'other' is not offered here (those offered are absent, closed)",
        ),
        (EvaluatorSettings(folders=("absent",)), "which is no folder"),
    ],
)
async def test_what_the_machine_lacks_is_named_with_the_fix(
    settings: EvaluatorSettings, message: str, tmp_path: Path
) -> None:
    async with Sandbox(folders={"absent": tmp_path / "absent", "closed": tmp_path}) as sandbox:
        with pytest.raises(EnvironmentUnavailable) as caught:
            await evaluate(sandbox, "def evaluate(path): return {'a': 1}", settings=settings)

    assert str(caught.value).startswith("this machine lacks what the task needs: ")
    assert message in str(caught.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="as root, programs run as somebody else")
async def test_a_folder_that_programs_could_not_read_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    async with Sandbox(folders={"closed": tmp_path}) as sandbox:
        with pytest.raises(EnvironmentUnavailable, match="chmod -R o\\+rX"):
            await evaluate(sandbox, "", settings=EvaluatorSettings(folders=("closed",)))


async def test_required_packages_may_be_named_either_way(sandbox: Sandbox) -> None:
    settings = EvaluatorSettings(required=("PyYAML", "yaml", "numpy", "json"))

    assert (
        await evaluate(sandbox, "import yaml\ndef evaluate(path): return {'a': 1}", settings=settings)
    ).verdict.passed
