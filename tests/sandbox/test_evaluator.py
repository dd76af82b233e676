"""OpenEvolve's evaluators in the jail."""

from __future__ import annotations

import math

import pytest

from sandbox import EvaluatorResult, Limits, Sandbox, Status

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

    assert (await evaluate(sandbox, evaluator, packages=False)).metrics == {"n": 0.0}
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
