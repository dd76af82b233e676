"""Arms of several models, and the models that a task's own configuration names: real servers, real jail."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from evolve.task import load_task
from service.cli import main
from service.cli.arms import ModelChoice, ModelChoiceError, open_arms, parse_choice
from service.folder import SearchFolder
from service.local import LocalSearcher
from service.schemas import RunStatus
from service.spec import Arm, SearchSpec
from tests.evolve.http_server import serving
from tests.service.openai_server import openai_server
from tests.service.test_arms import options
from tests.service.test_cli_search import MINIMISE, finish, interrupt_in_iteration_two, vpo
from tests.service.test_local import HALF, spec

KEY = "hunter2-secret"
REPLY = "```python\ndef search():\n    return {x}, 0.0\n```"


def task_folder(folder: Path, llm: dict[str, Any]) -> Path:
    """The example task with models of its own."""
    folder.mkdir()
    for name in ("evaluator.py", "initial_program.py"):
        (folder / name).write_text((MINIMISE / name).read_text())
    (folder / "config.yaml").write_text(yaml.safe_dump({"llm": llm}))
    return folder


def two(url: str, **changes: Any) -> dict[str, Any]:
    first = {"name": "a", "api_key": "${TASK_TEST_API_KEY}", "temperature": 0.2, "max_tokens": 64}
    return {"api_base": url, "models": [first, {"name": "b", "weight": 2}], "temperature": 0.9} | changes


def test_an_arm_is_one_model_or_several() -> None:
    models = [{"name": "a", "endpoint": "http://127.0.0.1:9/v1/"}, {"name": "b", "endpoint": "http://127.0.0.1:8/v1"}]
    arm = Arm.model_validate({"name": "both", "models": models})
    assert (arm.shown_model, arm.shown_endpoint) == ("a, b", "http://127.0.0.1:9/v1, http://127.0.0.1:8/v1")
    one = Arm(name="one", endpoint="http://127.0.0.1:9/v1", model="m", api_key_env="X_API_KEY")
    assert [(e.name, e.endpoint, e.api_key_env) for e in one.endpoints] == [("m", "http://127.0.0.1:9/v1", "X_API_KEY")]
    for body, message in (
        ({}, "endpoint and model missing"),
        ({"model": "m"}, "endpoint missing: give endpoint and model"),
        ({"models": models, "model": "m", "api_key_env": "X_API_KEY"}, "model, api_key_env: not beside models"),
        ({"models": [models[0] | {"api_key_env": "HOME"}]}, "ends in _API_KEY"),
    ):
        with pytest.raises(ValidationError, match=message):
            Arm.model_validate({"name": "x"} | body)
    with pytest.raises(ValidationError, match="must differ in name"):
        SearchSpec.model_validate(
            spec("http://127.0.0.1:9/v1").as_json() | {"arms": [{"name": "x", "models": [models[0]] * 2}]}
        )


async def test_the_models_of_an_arm_share_its_iterations() -> None:
    asked: list[tuple[str, float]] = []

    def answer(body: dict[str, Any]) -> str:
        asked.append((body["model"], body["temperature"]))
        return HALF

    async with openai_server(answer) as url:
        models = ({"name": "hot", "model": "m", "endpoint": url, "temperature": 2.0}, {"name": "n", "endpoint": url})
        plan = spec(url, arms=[{"name": "both", "models": models}], iterations=12)
        again = SearchSpec.model_validate(plan.as_json())
        outcome = await LocalSearcher()(again, lambda _: None, asyncio.Event())
    assert outcome.curve.status is RunStatus.DONE
    assert len(asked) == 24
    assert set(asked) == {("m", 2.0), ("n", 1.0)}


async def test_the_tasks_own_models_are_searched_with_and_no_key_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted and resumed: keys come from the environment, each time."""
    asked: list[dict[str, Any]] = []

    async def respond(body: dict[str, Any]) -> tuple[int, bytes]:
        asked.append(body)
        text = REPLY.format(x=float(len(asked)))
        choice = {"index": 0, "finish_reason": "stop", "message": {"content": text}}
        return 200, json.dumps({"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 5}}).encode()

    kept = tmp_path / "kept"
    async with serving(respond) as url:
        folder = task_folder(tmp_path / "task", two(url))
        arguments = ("search", str(folder), "--model", "task", "-i", "12", "--out", str(kept))
        for name in ("TASK_TEST_API_KEY", "OTHER_API_KEY"):
            monkeypatch.setenv(name, KEY)
        process = await vpo(*arguments, "--api-key-env", "OTHER_API_KEY")
        await interrupt_in_iteration_two(process)
        status, output, errors = await finish(process)
        assert status == 130, errors
        before = len(asked)
        status, output, errors = await finish(await vpo("resume", str(kept), "--json"))
    assert status == 0, errors
    assert "a at http://127.0.0.1" in errors
    assert "key from TASK_TEST_API_KEY" in errors
    assert "(weight 2, key from OTHER_API_KEY)" in errors
    run = json.loads(output)["runs"][0]
    assert (run["status"], run["iteration"]) == ("done", 12)
    assert before < len(asked) <= 14
    own = {(body["model"], body["temperature"], body["max_tokens"]) for body in asked}
    assert own == {("a", 0.2, 64), ("b", 0.9, 1024)}
    assert SearchFolder(kept).read().models == ("task",)
    everything = b"".join(path.read_bytes() for path in kept.rglob("*") if path.is_file())
    assert KEY.encode() not in everything + output.encode() + errors.encode()


def test_a_key_that_is_missing_is_named_before_anything_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TASK_TEST_API_KEY", raising=False)
    folder = task_folder(tmp_path / "task", two("http://127.0.0.1:9/v1"))
    with pytest.raises(SystemExit) as ended:
        main(["search", str(folder), "--model", "task", "--out", str(tmp_path / "kept")])
    assert ended.value.code == 2
    assert "TASK_TEST_API_KEY is not set" in capsys.readouterr().err
    assert not (tmp_path / "kept").exists()


async def test_a_key_for_the_models_that_name_none(tmp_path: Path) -> None:
    task = load_task(task_folder(tmp_path / "task", two("http://127.0.0.1:9/v1")))
    async with open_arms([parse_choice("own=task")], **options(api_key_env="OTHER_API_KEY"), tasks=[task]) as arms:
        assert [(arm.name, arm.api_key_env) for arm in arms] == [("own", None)]
        assert [model.api_key_env for model in arms[0].models] == ["TASK_TEST_API_KEY", "OTHER_API_KEY"]
    assert parse_choice("task") == ModelChoice(None)
    assert (parse_choice("task").text, parse_choice("own=task").text) == ("task", "own=task")


async def test_tasks_that_name_no_models_or_others(tmp_path: Path) -> None:
    one = load_task(task_folder(tmp_path / "one", two("http://127.0.0.1:9/v1")))
    other = load_task(task_folder(tmp_path / "other", two("http://127.0.0.1:8/v1")))
    none = load_task(task_folder(tmp_path / "none", {}))
    tests = spec("http://127.0.0.1:9/v1").tasks[0]
    for tasks, message in (
        ([one, other], "one and other name different models"),
        ([none], "task none: config.llm.models names no model"),
        ([tests], "task one cannot name models"),
    ):
        with pytest.raises(ModelChoiceError, match=message):
            async with open_arms([parse_choice("task")], **options(), tasks=tasks):
                pass


@pytest.mark.parametrize("variable", ["HOME", KEY])
@pytest.mark.parametrize("model", ["task", "http://127.0.0.1:9/v1"])
def test_what_is_no_variable_for_keys_is_not_read_and_not_repeated(
    variable: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = task_folder(tmp_path / "task", two("http://127.0.0.1:9/v1"))
    with pytest.raises(SystemExit) as ended:
        main(["search", str(folder), "--model", model, "--api-key-env", variable, "--out", str(tmp_path / "kept")])
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert "--api-key-env must be the name of an environment variable" in said.err
    assert KEY not in said.out + said.err
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("where", ["model", "api_base"])
def test_a_password_in_a_url_is_not_repeated(where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://me:{KEY}@127.0.0.1:9/v1"
    folder = task_folder(tmp_path / "task", two(url if where == "api_base" else "http://127.0.0.1:9/v1"))
    with pytest.raises(SystemExit) as ended:
        main(["search", str(folder), "--model", "task" if where == "api_base" else f"{url}#m"])
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert ("api_base" if where == "api_base" else "user name or password") in said.err
    assert KEY not in said.out + said.err
