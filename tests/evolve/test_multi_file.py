"""Tasks whose program is a folder: how they are read, what prompts show of them, and a search in the real jail."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evolve import run_async
from evolve.chain import ChainFormat
from evolve.chat import Budget, fit_chat, render_chat
from evolve.chat_example import example_context, example_edits, example_programs
from evolve.config import SearchConfig
from evolve.evaluator import make_evaluator
from evolve.file_edits import apply_file_edits, file_rules
from evolve.files import join_files, split_files
from evolve.journal import JournalStore
from evolve.manifest import read_manifest
from evolve.openevolve_task import OpenEvolveTask
from evolve.program import Reply, Usage
from evolve.prompts import PromptContext, ShownProgram
from evolve.request import Request
from evolve.search import Search
from evolve.shown import bare_program, fenced_program
from evolve.suite import TaskError, load_suite, load_task
from evolve.task import prompt_context
from evolve.tokens import MESSAGE_TOKENS, estimate_tokens
from sandbox import Sandbox
from sandbox.verdict import Status
from tests.evolve.builders import program
from tests.evolve.test_edits import block
from tests.evolve.test_file_edits import fenced
from tests.evolve.test_files import possible

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "multi_file" / "delivery_route"
EVALUATOR = "def evaluate(path):\n    return {'score': 0.5}\n"
FILES = {"main.py": "import b\n", "b.py": "x = 1\n"}


def folder(tmp_path: Path, **files: str) -> Path:
    texts = {"evaluator.py": EVALUATOR, **{f"initial_program/{path}": text for path, text in FILES.items()}, **files}
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def made(**values: Any) -> OpenEvolveTask:
    files = {"evaluator.py": EVALUATOR, **{f"initial_program/{path}": text for path, text in FILES.items()}}
    return OpenEvolveTask.model_validate({"name": "t", "files": files, **values})


# Tasks


def test_a_folder_is_the_program(tmp_path: Path) -> None:
    task = load_task(folder(tmp_path, **{"data.txt": "1"}))
    assert isinstance(task, OpenEvolveTask)
    assert (task.several_files, task.new_files, task.suffix, task.language) == (True, False, "", "python")
    assert task.seed_source == join_files(FILES)
    assert task.candidate(task.seed_source) == FILES
    assert task.support_files.keys() == {"evaluator.py", "data.txt"}
    assert OpenEvolveTask.model_validate(json.loads(json.dumps(task.model_dump(mode="json")))) == task
    assert load_suite(tmp_path).tasks == (task,)


def test_new_files_are_a_matter_of_the_task(tmp_path: Path) -> None:
    task = load_task(folder(tmp_path, **{"task.yaml": "format: openevolve\nnew_files: true\n"}))
    assert isinstance(task, OpenEvolveTask)
    search = Search(task, SearchConfig(edit="whole"), seed=0)
    search.begin(program(0, [0.5]).evaluation)
    request = search.ask()
    assert "It may add files" in (request.messages or ())[-1]["content"]
    texts = fenced("c.py", "y = 1\n"), fenced("evaluator.py", "y = 1\n")
    children = [search.read(request, Reply(texts=(text,), finished=(True,), usage=Usage())).children for text in texts]
    assert [len(found) for found in children] == [1, 0]
    assert children[0][0].source == join_files(FILES | {"c.py": "y = 1\n"})


def test_a_folder_or_a_file_but_not_both(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"both initial_program\.py and the folder initial_program/: keep the one"):
        load_task(folder(tmp_path, **{"initial_program.py": "x = 1\n"}))


@pytest.mark.parametrize(
    ("path", "message"),
    [("evaluator.py", "'evaluator.py' is the evaluator's"), ("a b/c~.py", "must be a relative path")],
)
def test_files_that_no_program_may_have(tmp_path: Path, path: str, message: str) -> None:
    with pytest.raises(TaskError, match=f"initial_program/: file name .*{message}|initial_program/: .*{message}"):
        load_task(folder(tmp_path, **{f"initial_program/{path}": "x = 1\n"}))


def test_links_and_binary_files_are_refused(tmp_path: Path) -> None:
    folder(tmp_path)
    (tmp_path / "initial_program" / "blob.bin").write_bytes(b"\xff\xfe")
    with pytest.raises(TaskError, match=r"blob\.bin is no text"):
        load_task(tmp_path)
    (tmp_path / "initial_program" / "blob.bin").unlink()
    (tmp_path / "initial_program" / "link").symlink_to(tmp_path / "evaluator.py")
    with pytest.raises(TaskError, match="link is a symbolic link"):
        load_task(tmp_path)


def test_no_program_at_all_and_a_program_that_looks_like_a_folder() -> None:
    for files, message in (
        ({"evaluator.py": EVALUATOR}, "or the folder initial_program/"),
        ({"evaluator.py": EVALUATOR, "initial_program.txt": join_files(FILES)}, "write them into initial_program/"),
    ):
        with pytest.raises(ValueError, match=message):
            OpenEvolveTask.model_validate({"name": "t", "files": files})


def test_a_compact_model_cannot_be_asked() -> None:
    manifest = read_manifest(ROOT / "checkpoints" / "minicode-vpo")
    with pytest.raises(ValueError, match="several files needs a chat model"):
        Search(made(), SearchConfig(), seed=0, manifest=manifest)


# Prompts


def context(source: str, **values: Any) -> PromptContext:
    parent = replace(program(0, [0.5], source=source))
    return replace(prompt_context(made(), parent=parent), **values)


def test_a_prompt_shows_each_file_under_its_path_and_says_how_to_reply() -> None:
    text = render_chat(context(join_files(FILES)))[-1]["content"]
    assert "b.py\n```python\nx = 1\n```\nmain.py\n```python\nimport b\n```" in text
    assert "every file that it changes, complete, in a fenced code block under a line with the file's path" in text
    assert "Files can be neither added nor removed." in text
    text = render_chat(context(join_files(FILES), edit="diff", new_files=True, m=2))[-1]["content"]
    assert "2 different answers, each with one or more SEARCH/REPLACE blocks, each under a line with the path" in text
    assert "It may add files; none can be removed." in text


def test_other_programs_show_only_the_files_that_differ() -> None:
    mate = ShownProgram(source=join_files(FILES | {"b.py": "x = 2\n"}), scalar=0.5, passed=1, total=2)
    text = render_chat(context(join_files(FILES), inspirations=(mate,)))[-1]["content"]
    assert text.count("import b") == 1
    assert "b.py\n```python\nx = 2\n```\nAs in the current program: main.py" in text


def test_files_that_do_not_fit_are_named_with_their_sizes() -> None:
    marked = "# EVOLVE-BLOCK-START\nx = 1\n# EVOLVE-BLOCK-END\n"
    source = join_files({"a.py": "y = 1\n" * 60, "z.py": marked, "c.txt": "fine\n"})
    shown = fenced_program(source, "python", 120)
    assert shown.startswith("c.txt\n```\nfine\n```\nz.py\n```python\n# EVOLVE-BLOCK-START")
    assert shown.endswith("Not shown: a.py (360 characters)")
    assert "… 300 characters left out …" in fenced_program(join_files({"a.py": "y = 1\n" * 60}), "python", 60)
    assert bare_program(source, 120).splitlines()[0] == "==> c.txt (1 line) <=="


@settings(deadline=None, max_examples=50)
@given(possible, st.integers(20, 400))
def test_a_shown_program_keeps_its_bound(files: dict[str, str], limit: int) -> None:
    frames = sum(2 * len(path) + 60 for path in files)
    for shown in (fenced_program(join_files(files), "python", limit), bare_program(join_files(files), limit)):
        assert len(shown) <= 2 * limit + frames + 200


def test_a_prompt_keeps_its_tokens() -> None:
    large = context(join_files({f"f{i}.py": "x = 1\n" * 300 for i in range(20)}))
    messages = fit_chat(large, ChainFormat(), limit=2_000, count=estimate_tokens)
    assert sum(estimate_tokens(message["content"]) + MESSAGE_TOKENS for message in messages) <= 2_000
    assert "Not shown:" in messages[-1]["content"]


@pytest.mark.parametrize("edit", ["whole", "diff"])
@pytest.mark.parametrize("m", [1, 3])
def test_the_worked_example_is_read_as_it_is_meant(edit: str, m: int) -> None:
    example = example_context(context(join_files(FILES), edit=edit, m=m))
    assert example.parent is not None
    rules = file_rules(example.parent.source)
    assert rules is not None
    answers = example_edits(example) if edit == "diff" else example_programs(example)
    assert len(answers) == m
    for answer in answers:
        result = apply_file_edits(answer, parent=example.parent.source, rules=rules, edit=edit)
        new, old = split_files(result.source or ""), split_files(example.parent.source)
        assert new is not None
        assert old is not None
        assert [path for path in new if new[path] != old[path]] == ["lib/squares.py", "main.py"]
    reply = render_chat(context(join_files(FILES), edit=edit, m=m))[2]["content"]
    assert all(answer in reply for answer in answers)


def test_a_template_gets_the_files_and_the_form_of_the_reply() -> None:
    files = {"evaluator.py": EVALUATOR, **{f"initial_program/{path}": text for path, text in FILES.items()}}
    files["prompts/full_rewrite_user.txt"] = "Mend this:\n```\n{current_program}\n```"
    task = OpenEvolveTask.model_validate(
        {"name": "t", "files": files, "config": {"prompt": {"template_dir": "prompts"}}}
    )
    search = Search(task, SearchConfig(edit="whole"), seed=0)
    search.begin(program(0, [0.5]).evaluation)
    messages = search.ask().messages
    assert messages is not None
    assert "```\n==> b.py (1 line) <==\nx = 1\n==> main.py (1 line) <==\nimport b\n```" in messages[-1]["content"]
    assert "under a line with the file's path" in messages[-1]["content"]


def test_the_budget_bounds_what_a_request_shows_of_the_program() -> None:
    source = join_files({f"f{i}.py": "x = 1\n" * 100 for i in range(9)})
    text = render_chat(context(source), budget=Budget(parent=1_500))[-1]["content"]
    assert text.count("```python") == 2
    assert "f8.py (600 characters)" in text


# Searches

TWO_OPT = '''\
def improved(tour, stops):
    """The tour after turning parts of it round for as long as that makes it shorter."""
    better = True
    while better:
        better = False
        for i in range(1, len(tour)):
            for j in range(i + 2, len(tour) + 1):
                turned = [*tour[:i], *reversed(tour[i:j]), *tour[j:]]
                if tour_length(turned, stops) < tour_length(tour, stops) - 1e-9:
                    tour, better = turned, True
    return tour
'''
MARKS = "# EVOLVE-BLOCK-START\n{}# EVOLVE-BLOCK-END\n"


class Stub:
    """One reply an iteration: a file, an edit of the other, what may not be touched, and what names no file."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        both = "main.py\n" + block(
            "from lib.moves import improved", "from lib.geometry import tour_length\nfrom lib.moves import improved"
        )
        replies = [
            "<think>\n```python\nx = 1\n```\n</think>\n" + fenced("lib/moves.py", MARKS.format(TWO_OPT)),
            both + fenced("lib/moves.py", TWO_OPT.replace("1e-9", "1e-12")),
            fenced("lib/geometry.py", "def tour_length(tour, stops):\n    return 0.0\n"),
            fenced("lib/tours.py", "x = 1\n"),
            "main.py\n" + block("    return improved(list(range(len(stops))), stops)", "    return [0]"),
        ]
        text = replies[(request.iteration - 1) % len(replies)]
        return Reply(texts=(text,), finished=(True,), usage=Usage(calls=1))


async def test_a_search_over_a_folder_in_the_jail(tmp_path: Path) -> None:
    stub, store = Stub(), JournalStore(tmp_path / "run.jsonl")
    config = {"islands": 1, "selection": SearchConfig().selection.only("exploit").model_dump()}
    result = await run_async(EXAMPLE, model=stub, iterations=5, concurrency=1, store=store, config=config)
    seed = result.programs[0]
    assert 0.0 < seed.evaluation.scalar < 0.2
    assert result.best.evaluation.scalar > 0.4
    files = [split_files(each.source) for each in result.programs]
    assert all(each is not None and each.keys() == (files[0] or {}).keys() for each in files)
    assert files[1] is not None
    assert TWO_OPT in files[1]["lib/moves.py"]
    assert files[1]["lib/moves.py"].startswith('"""Moves that make a tour shorter."""')
    rejected = {record.iteration: record.rejected[0].detail for record in result.records if record.rejected}
    assert rejected[3] == "outside_block: lib/geometry.py: it has no EVOLVE-BLOCK, so it may not change"
    assert rejected[4].startswith("unknown_file: lib/tours.py: the program has no such file, only lib/geometry.py")
    assert "main.py\n```python" in (stub.asked[0].messages or ())[-1]["content"]
    store.close()
    kept = JournalStore(tmp_path / "run.jsonl")
    resumed = await run_async(EXAMPLE, model=Stub(), iterations=7, concurrency=1, store=kept, config=config)
    kept.close()
    again = await run_async(EXAMPLE, model=Stub(), iterations=7, concurrency=1, config=config)
    assert [each.source for each in resumed.programs] == [each.source for each in again.programs]
    assert resumed.programs[: len(result.programs)] == result.programs


async def test_what_the_evaluator_sees_of_a_folder() -> None:
    evaluator = """
import os

def evaluate(path):
    found = sorted(os.path.relpath(os.path.join(top, name), path) for top, _, names in os.walk(path) for name in names)
    refused = 0
    for target in ("new.py", "main.py"):
        try:
            open(os.path.join(path, target), "w")
        except OSError:
            refused += 1
    text = open(os.path.join(path, "lib/b.txt"), newline="").read()
    return {"files": len(found), "refused": refused, "text": float(text == "a\\r\\nb")}
"""
    files = {"evaluator.py": evaluator, "initial_program/main.py": "x\n", "initial_program/lib/b.txt": "a\r\nb"}
    files["initial_program/" + "é" * 100] = ""  # the longest name
    task = OpenEvolveTask.model_validate({"name": "t", "files": files, "ranges": {"files": [0, 3], "refused": [0, 2]}})
    async with Sandbox(concurrency=1) as sandbox:
        judge = make_evaluator(task, sandbox)
        found = await judge.evaluate(task.seed_source)
        bad = await judge.evaluate("x = 1\n")
        with pytest.raises(ValueError, match="no files"):
            await sandbox.run_evaluator({}, task.support_files)
        with pytest.raises(ValueError, match="relative path"):
            await sandbox.run_evaluator({"../evaluator.py": ""}, task.support_files)
    assert found.metrics == {"files": 3.0, "refused": 2.0, "text": 1.0}
    assert (bad.scalar, set(bad.statuses), bad.infrastructure) == (0.0, {Status.ERROR}, None)
    assert "no text of several files" in bad.messages[0]
