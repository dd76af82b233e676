"""The sandbox under the other kinds of user: ordinary, and a root that may not mount (as in many containers)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.ordinary_user import run_as

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="this session is an ordinary user's already")
KEY_TESTS = ["test_hostile.py", "test_forgery.py", "test_runner.py", "test_leftovers.py", "test_confined.py"]
KEY_TESTS += ["test_evaluator.py"]
# Without what does not depend on the user: bare programs, the docs, each way to fail, each attack on a tier by name.
ELSEWHERE = "bare or the_docs or every_way_to_fail or the_best_tier or it_stops"


@pytest.fixture
def view() -> Iterator[Path]:
    """A folder that every user may enter, below parents that they may enter too."""
    with tempfile.TemporaryDirectory(prefix="vpo-view-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@AS_ROOT
def test_the_key_tests_pass_for_an_ordinary_user(view: Path) -> None:
    files = [f"tests/sandbox/{name}" for name in KEY_TESTS]
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest", "-p", "tests.sandbox.conftest", *files]
    arguments += ["-k", f"not ({ELSEWHERE})", "-m", "not soak"]

    done = run_as("ordinary", view, arguments, timeout=900)

    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    skipped = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
    assert all("no writable cgroup" in line or "as root, programs" in line for line in skipped), skipped


@AS_ROOT
def test_root_without_the_right_to_mount_uses_a_user_namespace(view: Path) -> None:
    code = """
import asyncio
from sandbox import CallTest, Sandbox
from sandbox.jail.probe import find_isolation

SOURCE = "import os\\ndef f(): return os.getuid() != 0"

async def main():
    async with Sandbox() as sandbox:
        print(find_isolation().demoted, *(await sandbox.grade_calls(SOURCE, "f", [CallTest(name="t", expected=True)])))

asyncio.run(main())
"""
    done = run_as("powerless root", view, ["-c", code], timeout=60)

    assert done.stdout.startswith("True "), done.stderr[-2000:]
    assert "Status.PASSED" in done.stdout
