"""Checkpoints of OpenEvolve, read and written. ``openevolve_run.json`` was recorded from OpenEvolve 0.4.0 itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolve.config import SearchConfig
from evolve.evaluator import component_names, evaluation_of_metrics, open_metrics
from evolve.islands import Islands
from evolve.openevolve_checkpoint import Checkpoint, CheckpointError, StoredProgram, read_checkpoint
from evolve.openevolve_checkpoint_import import ImportedRun, import_run
from evolve.openevolve_checkpoint_writer import FinishedRun, write_checkpoint
from evolve.program import Evaluation, IterationRecord, Reply, Usage
from evolve.search import Search
from evolve.suite import load_task
from evolve.task import OpenEvolveTask
from sandbox.cases import EvaluatorResult
from sandbox.verdict import Status, Verdict
from tests.evolve import world
from tests.evolve.openevolve_peer import ITERATIONS, unpack

SEED_METRICS = {"combined_score": 0.328, "first": 0.0, "loss": 7.0}
"""Of the recorded run's initial program."""


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return unpack(tmp_path)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> OpenEvolveTask:
    return toy_task(unpack(tmp_path_factory.mktemp("toy")))


def toy_task(checkpoint: Path, **changes: Any) -> OpenEvolveTask:
    task = load_task(checkpoint.parents[2] / "task")
    assert isinstance(task, OpenEvolveTask)
    return task.model_copy(update=changes)


def judging(task: OpenEvolveTask) -> Callable[[EvaluatorResult], Evaluation]:
    """What the task's evaluator does with what was said, without running it."""
    components = task.components or component_names(task, SEED_METRICS)
    opened = frozenset() if task.components else open_metrics(task, SEED_METRICS)
    return lambda result: evaluation_of_metrics(task, components, result, opened)


def taken_over(checkpoint: Path, task: OpenEvolveTask) -> ImportedRun:
    judge = judging(task)
    seed = judge(EvaluatorResult(verdict=Verdict(name="", status=Status.PASSED), metrics=SEED_METRICS))
    return import_run(read_checkpoint(checkpoint), seed_source=task.seed_source, seed=seed, judge=judge)


def population(config: SearchConfig, seed: Any, records: Any) -> list[set[int]]:
    islands = Islands(config)
    islands.seed(seed)
    for record in records:
        islands.absorb(record)
    return [{program.number for program in islands[island].members} for island in range(len(islands))]


def go_on(search: Search, until: int) -> list[IterationRecord]:
    """Iterations with replies that are programs of their own; every third cannot be judged."""
    records = []
    while search.told < until:
        request = search.ask()
        text = (
            f"```python\n# EVOLVE-BLOCK-START\ndef f(x):\n    return x + {request.iteration}\n# EVOLVE-BLOCK-END\n```"
        )
        reply = Reply(texts=(text,), finished=(True,), usage=Usage(calls=1))
        candidates = search.read(request, reply)
        status = Status.TIMEOUT if request.iteration % 3 == 0 else Status.PASSED
        verdict = Verdict(name="evaluate", status=status, message="too slow" if status is Status.TIMEOUT else "")
        score = {"combined_score": request.iteration / 100, "first": 1.0, "loss": 2.0}
        result = EvaluatorResult(verdict=verdict, metrics=score, artifacts={"said": f"it {request.iteration}"})
        assert isinstance(search.task, OpenEvolveTask)
        evaluations = [judging(search.task)(result) for _ in candidates.children]
        records.append(search.tell(request, reply, candidates, evaluations, elapsed_s=float(request.iteration)))
    return records


def test_a_recorded_checkpoint_is_read_whole(checkpoint: Path) -> None:
    found = read_checkpoint(checkpoint)
    assert (found.iteration, found.islands, len(found.programs)) == (ITERATIONS, 3, 18)
    assert found.lost_artifacts == 0
    best = next(program for program in found.programs if program.id == found.best)
    assert best.source == (checkpoint / "best_program.py").read_text()
    assert best.metrics["combined_score"] == max(p.metrics.get("combined_score", 0.0) for p in found.programs)
    long = [program for program in found.programs if set(program.artifacts) == {"lines", "stars"}]
    assert all(len(program.artifacts["stars"]) == 4 * int(program.artifacts["lines"]) for program in long)
    assert len(long) > 3


def test_its_programs_become_the_records_of_a_run(checkpoint: Path) -> None:
    stored = read_checkpoint(checkpoint).programs
    source_of = {program.id: program.source for program in stored}
    found = {program.source: program for program in stored if not program.migrant}
    run = taken_over(checkpoint, toy_task(checkpoint))
    assert [record.iteration for record in run.records] == list(range(1, ITERATIONS + 1))
    assert [program.number for program in run.programs] == list(range(18))
    for program in run.programs[1:]:
        original = found[program.source]
        (parent,) = (run.programs[number] for number in program.parents)  # OpenEvolve dropped none in this run
        assert parent.number < program.number
        if program.operator == "migrant":
            assert parent.source == program.source
            assert parent.iteration <= program.iteration
            assert parent.island != program.island
        else:
            assert (program.iteration, program.island) == (original.iteration, original.island)
            assert original.parent is not None
            assert parent.source == source_of[original.parent]
    assert sum(program.operator == "migrant" for program in run.programs) == 2
    best = max(run.programs, key=lambda program: program.evaluation.scalar)
    assert best.source == (checkpoint / "best_program.py").read_text()
    assert run.records[-1].best_scalar == best.evaluation.scalar == pytest.approx(0.696)
    assert sum(record.evaluations for record in run.records) == 15


def test_metrics_go_through_the_tasks_ranges(checkpoint: Path) -> None:
    run = taken_over(checkpoint, toy_task(checkpoint, ranges={"loss": (10.0, 0.0)}))
    for program in run.programs:
        evaluation = program.evaluation
        assert evaluation.components == ("loss",)
        if evaluation.metrics:
            assert evaluation.reward == pytest.approx((1.0 - evaluation.metrics["loss"] / 10.0,))
            assert evaluation.scalar == evaluation.metrics["combined_score"]


def test_failed_programs_and_odd_metrics_keep_their_meaning(checkpoint: Path) -> None:
    programs = taken_over(checkpoint, toy_task(checkpoint)).programs
    failed = [program.evaluation for program in programs if not program.evaluation.metrics]
    assert failed
    for evaluation in failed:
        assert set(evaluation.statuses) == {Status.ERROR}
        assert set(evaluation.messages) == {"no number today"}
        assert evaluation.scalar == 0.0
        assert "ValueError" in evaluation.artifacts["traceback"]
    odd = [program.evaluation for program in programs if "dropped_metrics" in program.evaluation.artifacts]
    assert odd
    assert all(evaluation.artifacts["dropped_metrics"] == "noise=NaN" for evaluation in odd)


def test_a_search_goes_on_at_the_next_iteration(checkpoint: Path) -> None:
    task = toy_task(checkpoint)
    run = taken_over(checkpoint, task)
    search = Search(task, SearchConfig(islands=3, scratch_probability=0.0), seed=0)
    search.restore(run.seed, run.records)
    assert search.spent.calls == 0
    request = search.ask()
    assert (request.iteration, request.island) == (ITERATIONS + 1, 0)
    (parent,) = request.parents
    assert run.programs[parent].island == 0
    assert request.parent_source == run.programs[parent].source


@pytest.mark.parametrize("interval", [2, 10])
def test_what_is_exported_and_imported_is_the_same_population(checkpoint: Path, tmp_path: Path, interval: int) -> None:
    task = toy_task(checkpoint)
    config = SearchConfig(islands=3, migration_interval=interval)
    first = taken_over(checkpoint, task)
    search = Search(task, config, seed=1)
    search.restore(first.seed, first.records)
    records = [*first.records, *go_on(search, ITERATIONS + 9)]
    out = tmp_path / "out"
    out.mkdir()
    count = write_checkpoint(out, FinishedRun(task=task, config=config, seed=first.seed, records=records, ended=1e9))
    again = taken_over(out, task)
    everything = [first.seed, *(program for record in records for program in record.programs)]
    assert list(again.programs) == everything
    assert count == len(everything)
    assert len(again.records) == ITERATIONS + 9
    assert population(config, again.seed, again.records) == population(config, first.seed, records)
    assert [r.best_scalar for r in again.records] == [r.best_scalar for r in records]
    assert again.notes == ()


def test_programs_keep_their_names_on_the_way_there_and_back(checkpoint: Path, tmp_path: Path) -> None:
    task = toy_task(checkpoint)
    run = taken_over(checkpoint, task)
    out = tmp_path / "out"
    out.mkdir()
    config = SearchConfig(islands=3)
    write_checkpoint(out, FinishedRun(task=task, config=config, seed=run.seed, records=run.records, ended=1e9))
    before, after = ({p.id: p for p in read_checkpoint(folder).programs} for folder in (checkpoint, out))
    assert before.keys() == after.keys()
    for name, program in before.items():
        assert after[name].parent == program.parent
        assert after[name].generation == program.generation
        assert after[name].timestamp == program.timestamp
        assert after[name].source == program.source
    assert read_checkpoint(out).best == read_checkpoint(checkpoint).best


def shape(value: Any) -> Any:
    """The type of a JSON value, and of what it holds."""
    if isinstance(value, list):
        return "list", frozenset(shape(item) for item in value)
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def test_an_export_has_the_fields_and_types_that_openevolve_writes(checkpoint: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    search = world.new_search(SearchConfig(migration_interval=2))
    seed = search.begin(world.judge(world.SEED_SOURCE))
    run = FinishedRun(
        task=world.task(),
        config=SearchConfig(migration_interval=2),
        seed=seed,
        records=world.run(search, 12),
        ended=1e9,
    )
    write_checkpoint(out, run)
    theirs, ours = (json.loads((folder / "metadata.json").read_text()) for folder in (checkpoint, out))
    assert theirs.keys() == ours.keys()
    for key, value in ours.items():
        assert shape(value) == shape(theirs[key]), key
    assert ours["last_iteration"] == len(run.records)
    assert sum(ours["island_generations"]) == len(run.records)
    allowed: dict[str, set[Any]] = {}
    inner: dict[str, set[Any]] = {}
    for path in (checkpoint / "programs").iterdir():
        document = json.loads(path.read_text())
        for key, value in document.items():
            allowed.setdefault(key, set()).add(shape(value))
        for key, value in document["metadata"].items():
            inner.setdefault(key, set()).add(shape(value))
    files = list((out / "programs").iterdir())
    for path in files:
        document = json.loads(path.read_text())
        assert document["id"] == path.stem
        assert document.keys() == allowed.keys()
        assert all(shape(value) in allowed[key] for key, value in document.items()), document
        metadata = document["metadata"]
        assert metadata.pop("vpo")["operator"]
        assert all(shape(value) in inner[key] for key, value in metadata.items()), metadata
    listed = [name for island in ours["islands"] for name in island]
    assert len(listed) == len(set(listed))
    assert {*listed, ours["best_program_id"]} <= {path.stem for path in files}
    info = json.loads((out / "best_program_info.json").read_text())
    assert info.keys() == json.loads((checkpoint / "best_program_info.json").read_text()).keys()
    assert search.best is not None
    assert info["metrics"]["combined_score"] == search.best.evaluation.scalar
    assert (out / "best_program.py").read_text() == search.best.source


def test_a_copy_without_its_original_and_a_lost_parent_are_told(checkpoint: Path) -> None:
    documents = {path: json.loads(path.read_text()) for path in (checkpoint / "programs").iterdir()}
    copied = next(d["parent_id"] for d in documents.values() if d["metadata"].get("migrant"))
    children = sum(document["parent_id"] == copied for document in documents.values())
    (checkpoint / "programs" / f"{copied}.json").unlink()
    metadata = json.loads((checkpoint / "metadata.json").read_text())
    metadata["islands"] = [[name for name in island if name != copied] for island in metadata["islands"]]
    (checkpoint / "metadata.json").write_text(json.dumps(metadata))
    run = taken_over(checkpoint, toy_task(checkpoint))
    assert len(run.programs) == 17
    assert any(note.startswith(f"{children} programs have a parent") for note in run.notes)


@pytest.mark.parametrize("name", ["../elsewhere", ".."])
def test_artifacts_are_read_beside_the_checkpoint_only(checkpoint: Path, tmp_path: Path, name: str) -> None:
    secret = tmp_path / "elsewhere" / "secret"
    secret.parent.mkdir()
    for path in (secret, checkpoint / "secret", checkpoint.parents[1] / "secret"):
        path.write_text("not for models")
    (checkpoint / "artifacts").mkdir()
    path = next(p for p in (checkpoint / "programs").iterdir() if json.loads(p.read_text())["artifact_dir"])
    document = json.loads(path.read_text()) | {"artifact_dir": str(secret.parent), "id": name}
    (checkpoint / "programs" / "odd.json").write_text(json.dumps(document))
    found = read_checkpoint(checkpoint)
    assert "not for models" not in repr(found)
    assert found.lost_artifacts == 1


def test_a_link_is_no_program(checkpoint: Path, tmp_path: Path) -> None:
    document = json.loads(next((checkpoint / "programs").iterdir()).read_text())
    (tmp_path / "other.json").write_text(json.dumps(document | {"id": "other"}))
    (checkpoint / "programs" / "other.json").symlink_to(tmp_path / "other.json")
    assert "other" not in {program.id for program in read_checkpoint(checkpoint).programs}


@pytest.mark.parametrize("field", ["last_iteration", "iteration_found"])
def test_iterations_beyond_any_run_are_refused(checkpoint: Path, field: str) -> None:
    path = checkpoint / "metadata.json" if field == "last_iteration" else next((checkpoint / "programs").iterdir())
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: 10**12}))
    with pytest.raises(CheckpointError, match=rf"{field}: .*less than or equal to 50000"):
        read_checkpoint(checkpoint)


@st.composite
def checkpoints(draw: st.DrawFn) -> Checkpoint:
    """Any lineage, time and place, however little sense it makes."""
    count = draw(st.integers(1, 12))
    names = st.sampled_from([None, *(f"p{i}" for i in range(count + 1))])
    metrics = st.sampled_from([SEED_METRICS, SEED_METRICS | {"combined_score": 0.9}, {"error": 0.0}, {}])
    sources = st.integers(0, 4).map(lambda value: f"def f(x):\n    return {value}\n")
    programs = [
        StoredProgram(
            id=f"p{i}",
            source=draw(sources),
            parent=draw(names),
            generation=draw(st.integers(0, 3)),
            timestamp=float(draw(st.integers(0, 4))),
            iteration=draw(st.integers(0, 6)),
            island=draw(st.integers(0, 2)),
            migrant=draw(st.booleans()),
            rewritten=draw(st.booleans()),
            metrics=SEED_METRICS if i == 0 else draw(metrics),
            artifacts={},
            origin=None,
        )
        for i in range(count)
    ]
    return Checkpoint(iteration=draw(st.integers(0, 6)), islands=3, programs=tuple(programs), best=draw(names))


@given(checkpoint=checkpoints())
def test_whatever_a_checkpoint_says_comes_of_it_is_a_run(checkpoint: Checkpoint, toy: OpenEvolveTask) -> None:
    judge = judging(toy)
    seed = judge(EvaluatorResult(verdict=Verdict(name="", status=Status.PASSED), metrics=SEED_METRICS))
    seed_source = "def f(x):\n    return 0\n"
    run = import_run(checkpoint, seed_source=seed_source, seed=seed, judge=judge)
    found = [program.source for program in run.programs]
    assert [program.number for program in run.programs] == list(range(len(found)))
    as_seed = [p for p in checkpoint.programs if p.source == seed_source and not p.iteration and not p.migrant]
    assert sorted(found) == sorted([seed_source, *(p.source for p in checkpoint.programs if p not in as_seed)])
    assert all(parent < program.number for program in run.programs for parent in program.parents)
    bests = [record.best_scalar for record in run.records]
    assert bests == sorted(bests)
    assert all(record.best_scalar <= 0.9 for record in run.records)
    search = Search(toy, SearchConfig(islands=3), seed=0)
    search.restore(run.seed, run.records)
    assert search.told == max([checkpoint.iteration, *(record.iteration for record in run.records)])
    assert search.best == max(run.programs, key=lambda program: (program.evaluation.scalar, -program.number))
    assert search.ask().iteration == search.told + 1


def damaged(checkpoint: Path, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    path = next(iter(sorted((checkpoint / "programs").iterdir()))) if name == "program" else checkpoint / name
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def test_what_is_wrong_with_a_checkpoint_is_named(checkpoint: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no metadata.json: name .*checkpoint_15"):
        read_checkpoint(checkpoint.parent)
    with pytest.raises(CheckpointError, match="there is no such folder"):
        read_checkpoint(checkpoint / "nowhere")
    damaged(checkpoint, "program", lambda document: document.update(generation=-1))
    with pytest.raises(CheckpointError, match=r"\.json: generation: .*not -1: is this a checkpoint of OpenEvolve 0.4"):
        read_checkpoint(checkpoint)
    damaged(checkpoint, "program", lambda document: document.update(generation=1, artifacts_json="{"))
    with pytest.raises(CheckpointError, match="artifacts_json is not valid JSON"):
        read_checkpoint(checkpoint)
    next(iter(sorted((checkpoint / "programs").iterdir()))).write_text('{"id": ')
    with pytest.raises(CheckpointError, match=r"\.json is not valid JSON"):
        read_checkpoint(checkpoint)
    next(iter(sorted((checkpoint / "programs").iterdir()))).unlink()
    with pytest.raises(CheckpointError, match="does not hold: copy the whole"):
        read_checkpoint(checkpoint)
    damaged(checkpoint, "metadata.json", lambda document: document.pop("islands"))
    with pytest.raises(CheckpointError, match=r"metadata.json: islands: Field required"):
        read_checkpoint(checkpoint)


def test_a_checkpoint_of_another_task_is_refused(checkpoint: Path) -> None:
    with pytest.raises(CheckpointError, match=r"metric 'los', which no program .*did you mean 'loss' in its ranges"):
        taken_over(checkpoint, toy_task(checkpoint, ranges={"los": (10.0, 0.0)}))
    with pytest.raises(CheckpointError, match="is this the task of that run"):
        taken_over(checkpoint, toy_task(checkpoint, ranges={"zzz": (10.0, 0.0)}))
