"""``vpo import`` and ``vpo export``: OpenEvolve's checkpoints in and out, in the real jail; with OpenEvolve in soak."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers import interpreter_with
from benchmarks.stub_model import program, stub_model
from evolve.openevolve_checkpoint import read_checkpoint
from evolve.suite import load_task
from service.cli import main
from service.folder import KeptSearch, SearchFolder, written_whole
from service.local import LocalSearcher
from service.spec import Arm, SearchSpec
from tests.evolve.openevolve_peer import ITERATIONS, call, unpack, write_task
from tests.service.openai_server import openai_server
from tests.service.test_cli_search import BRACKETS, ROOT, finish, vpo

SEVERAL = ROOT / "examples" / "multi_file" / "delivery_route"


class Model:
    """Answers with a new program each time."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def __call__(self, body: dict[str, Any]) -> str:
        self.asked.append(body)
        return f"```python\n{program(1_000 + len(self.asked))}```"


async def typed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit status, output and errors of a command, typed while a server of this loop answers."""

    def run() -> int:
        try:
            main(arguments)
        except SystemExit as ended:
            return int(ended.code or 0)
        return 0

    capsys.readouterr()
    status = await asyncio.to_thread(run)
    return status, *capsys.readouterr()


async def imported(
    capsys: pytest.CaptureFixture[str], checkpoint: Path, task: Path, kept: Path, *more: str
) -> tuple[int, str, str]:
    async with openai_server(Model()) as url:
        arguments = ("--task", str(task), "--model", f"{url}#m", "--out", str(kept), *more)
        return await typed(capsys, "import", str(checkpoint), *arguments)


async def test_a_run_of_openevolve_goes_on_here_and_is_written_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint, folder, out = unpack(tmp_path), SearchFolder(tmp_path / "kept"), tmp_path / "a" / "checkpoint_18"
    model, best = Model(), (checkpoint / "best_program.py").read_text()
    async with openai_server(model) as url:
        arguments = ("--task", str(tmp_path / "task"), "--model", f"{url}#m", "--out", str(folder.path), "-i", "3")
        status, output, errors = await typed(capsys, "import", str(checkpoint), *arguments, "--json")
        assert status == 0, errors
        assert not model.asked
        assert json.loads(output) == {
            "out": str(folder.path),
            "runs": 1,
            "iteration": ITERATIONS,
            "programs": 18,
            "best": pytest.approx(0.696),
            "notes": ["metrics that are no component of the task are kept as they are: noise"],
            "resume": f"vpo resume {folder.path}",
        }
        before = folder.read_run("1")
        _, output, _ = await typed(capsys, "show", str(folder.path), "--json")
        (shown,) = json.loads(output)["runs"]
        assert (shown["iteration"], shown["evaluations"], shown["calls"]) == (ITERATIONS, 15, 0)
        assert shown["best_source"] == best
        _, output, _ = await typed(capsys, "curve", str(folder.path), "--json")
        assert json.loads(output)["iterations"] == ITERATIONS + 3
        resumed = await LocalSearcher(kept=folder)(folder.read().spec, lambda _: None, asyncio.Event())
    assert [(run.iteration, run.calls) for run in resumed.runs] == [(ITERATIONS + 3, 3)]
    assert len(model.asked) == 3
    after = folder.read_run("1")
    assert after.records[:ITERATIONS] == before.records
    assert [record.island for record in after.records[ITERATIONS:]] == [0, 1, 2]
    status, output, errors = await typed(
        capsys, "export", str(folder.path), "--format", "openevolve", "--out", str(out), "--json"
    )
    assert status == 0, errors
    programs = 1 + sum(len(record.programs) for record in after.records)
    assert json.loads(output) == {
        "out": str(out),
        "format": "openevolve",
        "programs": programs,
        "iteration": ITERATIONS + 3,
    }
    found = read_checkpoint(out)
    assert (len(found.programs), found.iteration, found.islands) == (programs, ITERATIONS + 3, 3)
    assert {program.id for program in found.programs} >= {p.id for p in read_checkpoint(checkpoint).programs}


async def test_several_models_and_seeds_go_on_from_the_same_population(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint, folder, out = unpack(tmp_path), SearchFolder(tmp_path / "kept"), str(tmp_path / "out")
    async with openai_server(Model()) as url:
        models = ("--model", f"a={url}#m", "--model", f"b={url}#m", "--seed", "1", "--seed", "2")
        arguments = ("--task", str(tmp_path / "task"), *models, "--out", str(folder.path), "-i", "1")
        status, output, errors = await typed(capsys, "import", str(checkpoint), *arguments)
        assert (status, "into each of 4 runs" in output) == (0, True), errors
        done = await LocalSearcher(kept=folder)(folder.read().spec, lambda _: None, asyncio.Event())
    assert [(run.arm, run.seed) for run in done.runs] == [("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    assert all((run.status, run.iteration, run.calls) == ("done", ITERATIONS + 1, 1) for run in done.runs)
    status, _, errors = await typed(capsys, "export", str(folder.path), "--out", out)
    assert status == 2
    assert "has 4 runs: choose one with --run: 1 (a, task, seed 1), 2 (b, task, seed 1)" in errors
    assert not Path(out).exists()
    status, output, _ = await typed(capsys, "export", str(folder.path), "--run", "4", "--out", out)
    assert (status, f"of {ITERATIONS + 1} iterations" in output) == (0, True)


async def ran(*arguments: str) -> dict[str, Any]:
    """What a command of its own process says with --json."""
    status, output, errors = await finish(await vpo(*arguments, "--json"))
    assert status == 0, errors
    found: dict[str, Any] = json.loads(output)
    return found


async def test_a_failed_import_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint, task, kept = unpack(tmp_path), tmp_path / "task", tmp_path / "kept"
    (task / "task.yaml").write_text("format: openevolve\nranges: {los: [10, 0]}\n")
    status, _, errors = await imported(capsys, checkpoint, task, kept)
    assert (status, errors.count("did you mean 'loss'")) == (2, 1), errors
    (task / "task.yaml").unlink()
    (tmp_path / "five.yaml").write_text("islands: 5\n")
    status, _, errors = await imported(capsys, checkpoint, task, kept, "--config", str(tmp_path / "five.yaml"))
    assert (status, "the checkpoint has 3, --config says 5" in errors) == (2, True), errors
    status, _, errors = await imported(capsys, checkpoint, SEVERAL, kept)
    assert (status, "of several files" in errors) == (2, True), errors
    status, _, errors = await imported(capsys, checkpoint, BRACKETS, kept)
    assert (status, "is a task with tests" in errors) == (2, True), errors
    next((checkpoint / "programs").iterdir()).write_text("{")
    status, _, errors = await imported(capsys, checkpoint, task, kept)
    assert (status, "is not valid JSON" in errors) == (2, True), errors
    (checkpoint / "metadata.json").unlink()
    status, _, errors = await imported(capsys, checkpoint, task, kept)
    assert (status, "holds no metadata.json" in errors) == (2, True), errors
    assert not [path for path in tmp_path.iterdir() if "kept" in path.name]
    kept.mkdir()
    (kept / "mine").write_text("kept")
    status, _, errors = await imported(capsys, checkpoint, task, kept)
    assert (status, "not an empty folder" in errors) == (2, True), errors
    assert [path.name for path in kept.iterdir()] == ["mine"]


def test_a_folder_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    with pytest.raises(FileNotFoundError), written_whole(out) as part:
        shutil.copy(__file__, part) and shutil.copy(part / "missing", part)
    assert not list((tmp_path / "a").iterdir())
    out.mkdir()
    with written_whole(out) as part:
        (part / "file").write_text("whole")
        assert not list(out.iterdir())
    assert (out / "file").read_text() == "whole"
    assert out.stat().st_mode & 0o777 == tmp_path.joinpath("a").stat().st_mode & 0o777


def test_the_folder_may_be_this_one_or_a_link_to_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, link = tmp_path / "here", tmp_path / "link"
    here.mkdir()
    link.symlink_to(here)
    monkeypatch.chdir(here)
    for path in (Path(), link):
        with written_whole(path) as part:
            (part / "file").write_text("whole")
        (here / "file").unlink()
        assert sorted(each.name for each in tmp_path.iterdir()) == ["here", "link"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("export", "nowhere", "--out", "unused"), "nowhere holds no search"),
        (("export", "12345", "--out", "unused"), "only one in a folder"),
    ],
)
def test_what_cannot_be_exported_is_said(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_programs_of_several_files_are_not_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = "http://127.0.0.1:9/v1"
    several = SearchSpec(name="several", tasks=(load_task(SEVERAL),), arms=(Arm(name="m", endpoint=url, model="m"),))
    SearchFolder(tmp_path / "kept").begin(KeptSearch(models=(f"{url}#m",), spec=several))
    with pytest.raises(SystemExit):
        main(("export", str(tmp_path / "kept"), "--out", str(tmp_path / "out")))
    assert "are of several files" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.soak
async def test_openevolve_itself_opens_what_is_exported_and_goes_on(tmp_path: Path) -> None:
    """OpenEvolve writes a checkpoint, it goes on here, and OpenEvolve goes on from there."""
    peer = interpreter_with("openevolve==0.4.0", module="openevolve")
    task = write_task(tmp_path)
    kept, out = tmp_path / "kept", tmp_path / "exported"
    with stub_model() as stub:
        first = await asyncio.to_thread(
            call, peer, "search", str(task), stub, str(ITERATIONS), str(tmp_path / "output"), folder=tmp_path
        )
        checkpoint = tmp_path / "output" / "checkpoints" / f"checkpoint_{ITERATIONS}"
        async with openai_server(Model()) as url:
            arguments = ("--task", str(task), "--model", f"{url}#m", "--out", str(kept), "-i", "12", "--start")
            done = await ran("import", str(checkpoint), *arguments)
        exported = await ran("export", str(kept), "--out", str(out))
        found = call(peer, "load", str(task), str(out), folder=tmp_path)
        after = await asyncio.to_thread(
            call, peer, "search", str(task), stub, "9", str(tmp_path / "again"), str(out), folder=tmp_path
        )
    (run,) = done["runs"]
    assert len(found["programs"]) == exported["programs"]
    assert found["iteration"] == ITERATIONS + 12
    assert found["programs"][found["best"]][0] == run["best_source"] == found["programs"][found["top"]][0]
    assert found["programs"].keys() >= first["programs"].keys()
    for name, theirs in first["programs"].items():
        theirs_said = first["artifacts"][name]
        assert found["programs"][name][0].strip() == theirs[0].strip()
        assert found["programs"][name][1] == theirs[1]
        said = {key: value if isinstance(value, str) else json.dumps(value) for key, value in theirs_said.items()}
        assert found["artifacts"][name].items() >= said.items()
    assert len(found["islands"]) == 3
    assert all(found["islands"])
    listed = [name for island in found["islands"] for name in island]
    assert len(listed) == len(set(listed))
    for island, best in zip(found["islands"], found["island_best"], strict=True):
        assert best in island
    assert sum(found["generations"]) == ITERATIONS + 12
    assert after["iteration"] == ITERATIONS + 12 + 9
    assert after["programs"].keys() >= {found["best"]}
    assert max(program[2] for program in after["programs"].values()) > ITERATIONS + 12
