"""The two demonstrations as people start them: everything real, only shorter."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.service.conftest import public_folder

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    """An environment whose service has a data folder of its own."""
    with public_folder() as folder:
        kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
        yield kept | {"VPO_DATA_DIR": str(folder), "VPO_PORT": "0", "OMP_NUM_THREADS": "1", "COLUMNS": "80"}


def run(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=420, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not left_over(environment["VPO_DATA_DIR"])
    return done.stdout


def left_over(data_dir: str) -> list[str]:
    """Command lines of processes that belong to the data folder."""
    lines = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = " ".join(process.info["cmdline"] or [])
        if data_dir in line and process.info["status"] != psutil.STATUS_ZOMBIE:
            lines.append(line)
    return lines


def test_two_models_are_compared_and_drawn(environment: dict[str, str], tmp_path: Path) -> None:
    output = run(environment, "-m", "service.cli", "demo", "-i", "3", "--out", str(tmp_path / "demo"))
    assert "12 problems, 2 arms, 3 iterations of 3 evaluations each" in output
    assert "dashboard: http://127.0.0.1:" in output
    with (tmp_path / "demo" / "curve.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["arm"], row["t"]) for row in rows] == [
        (arm, str(t)) for arm in ("minicode-grpo", "minicode-vpo") for t in range(4)
    ]
    assert all(int(row["evaluations"]) <= 12 * 3 * int(row["t"]) for row in rows)
    assert all(float(row["best_at_t"]) > 0 for row in rows if row["t"] == "3")
    assert (tmp_path / "demo" / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_pretrained_model_is_judged_assert_by_assert(environment: dict[str, str], tmp_path: Path) -> None:
    arguments = ("--problems", "2", "-i", "1", "--folder", str(tmp_path / "smollm2"))
    output = run(environment, "-m", "examples.smollm2", *arguments)
    assert output.count(": done, 1 iterations") + output.count("solved in iteration 1") >= 2
    assert output.count("1 replies, ") == 2
    assert "asserts" in output
