"""``vpo search`` as people type it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from service.model_server import ModelServer
from tests.service.openai_server import openai_server

ROOT = Path(__file__).parents[2]
BRACKETS = ROOT / "examples" / "tests" / "balanced_brackets"
MINIMISE = ROOT / "examples" / "openevolve" / "minimise"
DELIVERY = ROOT / "examples" / "multi_file" / "delivery_route"
WRONG = "```python\ndef f(*args):\n    return None\n```"


async def vpo(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "service.cli", *arguments),
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def interrupt_in_iteration_two(process: asyncio.subprocess.Process) -> None:
    """Ctrl-C as soon as a search says that it is there."""
    assert process.stdout is not None
    async with asyncio.timeout(120):
        while b"iteration 2/" not in (line := await process.stdout.readline()):
            assert line, await finish(process)
    process.send_signal(signal.SIGINT)


async def finish(process: asyncio.subprocess.Process) -> tuple[int, str, str]:
    async with asyncio.timeout(120):
        output, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode(), errors.decode()


@pytest.mark.slow
async def test_a_compact_model_is_asked_as_its_manifest_says(model_server: ModelServer, tmp_path: Path) -> None:
    """A real vLLM server by URL: its manifest is found beside its weights."""
    suite = ROOT / "examples" / "minicode" / "suite.json"
    arguments = ("--model", f"{model_server.url}#{model_server.name}", "-i", "2", "--json", "--out", str(tmp_path))
    status, output, errors = await finish(await vpo("search", str(suite), *arguments))
    assert status == 0, errors
    result = json.loads(output)
    assert result["curve"]["status"] == "done"
    assert [run["iteration"] for run in result["runs"]] == [2] * 12
    assert all(run["calls"] == 2 and run["completion_tokens"] > 0 for run in result["runs"])
    assert (tmp_path / "curve.png").stat().st_size > 10_000
    assert len((tmp_path / "curve.csv").read_text().splitlines()) == 1 + 3
    assert len(list((tmp_path / "best" / "tiny").iterdir())) == 12


async def test_an_openevolve_task_runs_unchanged() -> None:
    better = "```python\ndef search():\n    return 0.0, 0.0\n```"
    async with openai_server(lambda _: better) as url:
        status, output, errors = await finish(await vpo("search", str(MINIMISE), "--model", f"{url}#m", "-i", "2"))
    assert status == 0, errors
    assert "iteration" in output
    assert "best program:" in output


async def test_the_best_of_programs_of_several_files_is_written_as_a_folder(tmp_path: Path) -> None:
    better = "lib/moves.py\n```python\ndef improved(tour, stops):\n    return sorted(tour, key=lambda i: stops[i])\n```"
    async with openai_server(lambda _: better) as url:
        model = ("--model", f"m={url}#m", "-i", "2", "--json", "--out", str(tmp_path / "kept"))
        status, output, errors = await finish(await vpo("search", str(DELIVERY), *model))
    assert status == 0, errors
    (run,) = json.loads(output)["runs"]
    assert run["best_source"].startswith("==> lib/geometry.py (8 lines) <==")
    (best,) = (tmp_path / "kept" / "best" / "m").iterdir()
    assert sorted(path.name for path in best.rglob("*.py")) == ["geometry.py", "main.py", "moves.py"]
    assert "sorted(tour" in (best / "lib" / "moves.py").read_text()


async def test_ctrl_c_stops_gracefully_with_what_was_found() -> None:
    async with openai_server(lambda _: WRONG) as url:
        process = await vpo("search", str(BRACKETS), "--model", f"{url}#m", "-i", "100000")
        assert process.stdout is not None
        async with asyncio.timeout(60):
            while b"iteration 2/" not in await process.stdout.readline():
                pass
        process.send_signal(signal.SIGINT)
        status, output, errors = await finish(process)
    assert status == 130, errors
    assert "stopping" in output
    assert "0 of 1" in output
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("nowhere", "--model", "http://127.0.0.1:9/v1#m"), 2, "nowhere does not exist"),
        ((str(BRACKETS), "--model", "http://127.0.0.1:9/v1#m"), 2, "nothing answers at http://127.0.0.1:9/v1"),
        ((str(BRACKETS), "--model", "nowhere"), 2, "neither a checkpoint folder nor a URL"),
        ((str(BRACKETS), "--model", "http://127.0.0.1:9/v1#m", "--edit", "both"), 2, "edit"),
    ],
)
async def test_mistakes_are_explained_in_a_line(arguments: tuple[str, ...], status: int, message: str) -> None:
    found, _, errors = await finish(await vpo("search", *arguments))
    assert found == status
    assert message in errors
    assert "Traceback" not in errors
