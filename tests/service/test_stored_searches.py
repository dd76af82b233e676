"""Searches that are kept in a folder: resumed, shown, drawn and compared."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console

from service.cli import main
from service.cli.compare import collect, compare_arms
from service.cli.resume import resume_there
from service.cli.stored import is_folder, read_stored
from service.client import ServiceClient
from service.folder import KeptSearch, SearchFolder
from service.local import LocalSearcher, stored_outcome
from service.schemas import RunStatus
from service.spec import SearchSpec
from tests.service.bodies import arm, search, task
from tests.service.model_fake import FakeModel
from tests.service.openai_server import openai_server
from tests.service.test_cli_search import BRACKETS, WRONG, finish, interrupt_in_iteration_two, vpo
from tests.service.test_local import HALF, spec


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """What a command prints with --json."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--json"])
    assert not ended.value.code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


async def test_a_search_goes_on_from_its_folder_as_if_never_interrupted(tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []

    def answer(body: dict[str, Any]) -> str:
        asked.append(body)
        return HALF

    folder, stop = SearchFolder(tmp_path / "kept"), asyncio.Event()
    async with openai_server(answer) as url:
        plan = spec(url, iterations=6)
        folder.begin(KeptSearch(models=(f"{url}#m",), spec=plan))
        first = await LocalSearcher(kept=folder)(plan, lambda run: run.iteration == 2 and stop.set(), stop)
        assert first.curve.status is RunStatus.CANCELLED
        assert stored_outcome(plan, folder).curve.arms == first.curve.arms
        second = await LocalSearcher(kept=folder)(folder.read().spec, lambda _: None, asyncio.Event())
    assert second.curve.status is RunStatus.DONE
    assert [run.iteration for run in second.runs] == [6] * 4
    assert len(asked) == sum(run.calls + run.lost_calls for run in second.runs)
    assert all(run.calls == 6 for run in second.runs)
    stored = stored_outcome(plan, folder)
    assert stored.curve == second.curve
    assert stored.best == second.best
    assert {run.ended for run in stored.runs} == {run.ended for run in second.runs} == {"completed"}
    assert {run.ended for run in first.runs} == {None}
    assert stored.rejected == second.rejected


def test_a_folder_holds_one_search(tmp_path: Path) -> None:
    folder = SearchFolder(tmp_path)
    with pytest.raises(ValueError, match="holds no search"):
        folder.read()
    kept = KeptSearch(models=("http://127.0.0.1:9/v1#m",), spec=spec("http://127.0.0.1:9/v1"))
    folder.begin(kept)
    assert folder.read() == kept
    with pytest.raises(ValueError, match="vpo resume"):
        folder.begin(kept)
    (tmp_path / "search.json").write_text('{"models": []}')
    with pytest.raises(ValueError, match="spec"):
        folder.read()


async def test_ctrl_c_says_how_to_go_on_and_that_works(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "kept"
    async with openai_server(lambda _: WRONG) as url:
        process = await vpo("search", str(BRACKETS), "--model", f"x={url}#m", "-i", "40", "--out", str(kept))
        await interrupt_in_iteration_two(process)
        status, output, errors = await finish(process)
        assert status == 130, errors
        assert f"vpo resume {kept}" in output
        before = len((kept / "runs" / "1.jsonl").read_text().splitlines())
        status, output, errors = await finish(await vpo("resume", str(kept), "--json"))
    assert status == 0, errors
    run = json.loads(output)["runs"][0]
    assert (run["status"], run["iteration"]) == ("done", 40)
    assert len((kept / "runs" / "1.jsonl").read_text().splitlines()) > before
    assert (kept / "curve.png").exists()


async def _done(folder: Path, *, solved: str) -> None:
    """A finished search of two arms, of which ``solved`` solves both tasks."""
    right = "```python\ndef f(x):\n    return x + x\n```"
    async with openai_server(lambda body: right if body["model"] == solved else HALF) as url:
        arms = [{"name": name, "endpoint": url, "model": name} for name in ("a", "b")]
        plan = spec(url, arms=arms, iterations=2)
        SearchFolder(folder).begin(KeptSearch(models=(url,), spec=plan))
        await LocalSearcher(kept=SearchFolder(folder))(plan, lambda _: None, asyncio.Event())


def test_stored_searches_are_shown_drawn_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    asyncio.run(_done(Path(first), solved="b"))
    asyncio.run(_done(Path(second), solved="a"))
    shown = said(capsys, "show", first)
    assert shown["status"] == "done"
    assert [run["solved_at"] for run in shown["runs"]] == [None, 1, None, 1]
    assert "x + x" in said(capsys, "show", first, "--run", "2")["runs"][0]["best_source"]
    drawn = said(capsys, "curve", first, "--out", str(tmp_path / "drawn"))
    assert [arm["solved"] for arm in drawn["arms"]] == [[0, 0, 0], [0, 2, 2]]
    assert (tmp_path / "drawn" / "curve.png").exists()
    found = said(capsys, "compare", first)
    assert found["cases"] == 2
    assert found["arms"][1]["solved_more"] == {"mean": 1.0, "low": 1.0, "high": 1.0}
    assert (found["arms"][1]["wins"], found["arms"][1]["losses"]) == (2, 0)
    found = said(capsys, "compare", first, second, "--baseline", f"{second}/a")
    assert [arm["arm"] for arm in found["arms"]] == [f"{first}/a", f"{first}/b", f"{second}/a", f"{second}/b"]
    assert [arm["losses"] for arm in found["arms"]] == [2, 0, 0, 2]
    with pytest.raises(SystemExit):
        main(["show", first])
    assert "iteration 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "nowhere"), "holds no search"),
        (("curve", "nowhere"), "holds no search"),
        (("resume", "nowhere"), "holds no search"),
        (("show", "7", "--service", "http://127.0.0.1:9"), "nothing answers"),
    ],
)
def test_mistakes_are_explained(arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code in (1, 2)
    assert message in " ".join(capsys.readouterr().err.split())


def test_what_cannot_be_compared_is_named() -> None:
    with pytest.raises(ValueError, match="only one model"):
        compare_arms({"a": {}}, None)
    with pytest.raises(ValueError, match="--baseline c"):
        compare_arms({"a": {}, "b": {}}, "c")
    with pytest.raises(ValueError, match="in common"):
        compare_arms({"a": {}, "b": {}}, None)


async def test_a_search_on_a_service_is_resumed_and_read_by_its_number(
    api: httpx.AsyncClient, model: FakeModel
) -> None:
    url, output = str(api.base_url), io.StringIO()
    async with ServiceClient(url) as client:
        body = {"tasks": [task("one")], "arms": [arm(model.url, "a"), arm(model.url, "b")], "iterations": 25}
        number = (await client.create(SearchSpec.model_validate(search(model.url, **body)))).id
        await client.cancel(number)
    assert not is_folder(number)
    assert (await read_stored(number, url)).outcome.curve.status is RunStatus.CANCELLED
    finished = await resume_there(Console(file=output, width=120), number, url)
    assert finished.outcome.curve.status is RunStatus.DONE
    assert not finished.stopped
    assert f"search {number}: {url}" in output.getvalue()
    stored = await read_stored(number, url)
    assert stored.outcome.best == finished.outcome.best
    cases, rows = compare_arms(collect([number], [stored]), None)
    assert len(cases) == 1
    assert [row.arm for row in rows] == ["a", "b"]
