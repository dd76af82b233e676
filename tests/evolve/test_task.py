"""Tasks: validation, defaults, JSON round trips, prompts' facts, and reading from files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from evolve.chat import render_chat
from evolve.config import SearchConfig
from evolve.openevolve_task import OpenEvolveTask
from evolve.strict import explain
from evolve.task import Task, TaskError, TestsTask, load_suite, load_task, prompt_context
from sandbox.limits import Limits
from tests.evolve.builders import program

TASK: TypeAdapter[Any] = TypeAdapter(Task)
EXAMPLES = Path(__file__).parents[2] / "examples"

CALLS: dict[str, Any] = {
    "format": "tests",
    "name": "reverse",
    "statement": "Reverse the list.",
    "entry_point": "f",
    "tests": [
        {"args": [[1, 2]], "expected": [2, 1]},
        {"args": [[]], "expected": [], "visible": False},
        {"name": "floats", "args": [[0.5]], "expected": [0.5], "tolerance": 0.1},
    ],
}
STDIN: dict[str, Any] = {
    "format": "tests",
    "name": "echo",
    "statement": "Print the input.",
    "tests": [{"stdin": "1\n", "expected": "1\n"}, {"stdin": "", "expected": "", "compare": "exact"}],
}
OPENEVOLVE: dict[str, Any] = {
    "format": "openevolve",
    "name": "opt",
    "files": {"evaluator.py": "def evaluate(path):\n    return {'a': 1.0}\n", "initial_program.py": "x = 1\n"},
}


CHECKER = "def check(args, expected, actual):\n    return abs(actual) == expected\n"
NESTED: list[Any] = json.loads("[" * 70 + "]" * 70)


def changed(document: dict[str, Any], **values: Any) -> dict[str, Any]:
    return {**document, **values}


def test_defaults_of_a_calls_task() -> None:
    task = TASK.validate_python(CALLS)
    assert task.components == ("t00", "t01", "floats")
    assert task.seed_source == "def f(*args):\n    return None\n"
    assert task.hidden == 1
    assert [test.compare for test in task.call_tests] == ["exact", "exact", "float"]
    assert task.stdio_tests == ()
    assert task.sandbox_limits is None


def test_defaults_of_a_stdin_task() -> None:
    task = TASK.validate_python(STDIN)
    assert task.components == ("t00", "t01")
    assert [test.compare for test in task.stdio_tests] == ["whitespace", "exact"]
    compile(task.seed_source, "seed", "exec")


def test_a_checker_judges_where_nothing_else_is_said() -> None:
    tests = [{"args": [1], "expected": 1}, {"args": [1], "expected": 1, "tolerance": 0.1}]
    tests += [{"args": [1], "expected": 1, "compare": compare} for compare in ("unordered", "exact")]
    task = TASK.validate_python(changed(CALLS, checker=CHECKER, tests=tests))

    assert [test.compare for test in task.call_tests] == ["checker", "float", "unordered", "exact"]
    assert [test.other_answers for test in prompt_context(task).tests] == [
        ", or anything else that is right by the statement",
        "",
        ", in any order",
        "",
    ]
    stdin = TASK.validate_python(changed(STDIN, checker=CHECKER))
    assert [test.compare for test in stdin.stdio_tests] == ["checker", "exact"]


def test_another_language_has_its_own_stub() -> None:
    task = TASK.validate_python(changed(STDIN, language="cpp"))

    assert task.seed_source.startswith("int main()")
    assert prompt_context(task).language == "cpp"


def test_arguments_that_json_lacks() -> None:
    tests = [{"args_literal": "((1, 2), {5: 'a'}, {3})", "expected": 1}]
    task = TASK.validate_python(changed(CALLS, tests=tests))

    assert task.call_tests[0].args == ((1, 2), {5: "a"}, {3})
    assert "f((1, 2), {5: 'a'}, {3}) must return 1" in render_chat(prompt_context(task))[-1]["content"]
    assert TASK.validate_python(json.loads(task.model_dump_json())) == task


def test_prompts_say_what_is_defined_already() -> None:
    preamble = "import math\n\n\ndef helper(x):\n    return x\n"
    shown = TASK.validate_python(changed(CALLS, preamble=preamble))
    known = TASK.validate_python(changed(CALLS, preamble=preamble, statement=f"{preamble}\n\ndef f(x): ..."))

    content = render_chat(prompt_context(shown))[-1]["content"]
    assert f"need not repeat it:\n```python\n{preamble}```" in content
    content = render_chat(prompt_context(known))[-1]["content"]
    assert "in the task above are already defined" in content
    assert content.count("import math") == 1
    assert "already defined" not in render_chat(prompt_context(TASK.validate_python(CALLS)))[-1]["content"]


def test_limits_keep_the_sandboxs_defaults_for_the_rest() -> None:
    task = TASK.validate_python(changed(CALLS, limits={"wall_s": 1.5, "memory_mb": 64}))
    assert task.sandbox_limits == Limits(wall_s=1.5, memory_mb=64)
    assert isinstance(task.sandbox_limits.memory_mb, int)


@pytest.mark.parametrize("document", [CALLS, STDIN, OPENEVOLVE, changed(OPENEVOLVE, config={"log_level": "INFO"})])
def test_a_task_is_a_json_document(document: dict[str, Any]) -> None:
    task = TASK.validate_python(document)
    stored = json.loads(json.dumps(task.model_dump(mode="json"), allow_nan=False))
    assert TASK.validate_python(stored) == task
    assert TASK.validate_json(task.model_dump_json()) == task


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(args=st.lists(JSON, max_size=3), expected=JSON)
def test_any_storable_value_survives_the_round_trip(args: list[Any], expected: Any) -> None:
    document = changed(CALLS, tests=[{"args": args, "expected": expected}])
    try:
        task = TASK.validate_python(document)
    except ValidationError as error:
        assert "cannot be stored" in str(error)  # noqa: PT017 (only NUL and surrogates may be refused)
        return
    again = TASK.validate_python(json.loads(json.dumps(task.model_dump(mode="json"))))
    assert again == task
    assert again.tests[0].args == tuple(args)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (changed(CALLS, statment="x"), "unknown key 'statment': did you mean 'statement'?"),
        (changed(CALLS, zzz=1), "unknown key 'zzz': use one of"),
        (changed(CALLS, tests=[{"args": [1], "expectd": 1}]), "did you mean 'expected'?"),
        (changed(CALLS, tests=[]), "at least 1"),
        (changed(CALLS, entry_point="not a name"), "entry_point must be the name"),
        (changed(CALLS, entry_point="def"), "entry_point must be the name"),
        (changed(CALLS, entry_point=None), "tests[0] has args, but the task has no entry_point"),
        (changed(STDIN, entry_point="f"), "tests[0] has stdin, but the task has entry_point 'f'"),
        (
            changed(CALLS, tests=[{"args": [], "expected": 1}, {"name": "t00", "args": [], "expected": 1}]),
            "tests 0 and 1",
        ),
        (changed(CALLS, tests=[{"args": [float("nan")], "expected": 1}]), "must be finite"),
        (changed(CALLS, tests=[{"args": [(1, 2)], "expected": 1}]), "tests[0]"),
        (changed(CALLS, tests=[{"args": ["\ud800"], "expected": 1}]), "surrogates"),
        (changed(CALLS, tests=[{"args": [], "expected": 1, "compare": "exact", "tolerance": 1}]), "has no effect"),
        (changed(CALLS, tests=[{"args": [], "expected": 1, "compare": "whitespace"}]), "'exact', 'float'"),
        (changed(CALLS, tests=[{"expected": 1}]), "needs either args or args_literal"),
        (
            changed(CALLS, tests=[{"args": [], "args_literal": "()", "expected": 1}]),
            "needs either args or args_literal",
        ),
        (changed(CALLS, tests=[{"args_literal": "[1]", "expected": 1}]), "args_literal must be a Python tuple"),
        (changed(CALLS, tests=[{"args_literal": "(f(),)", "expected": 1}]), "args_literal must be a Python tuple"),
        (changed(CALLS, tests=[{"args_literal": "(" * 300, "expected": 1}]), "args_literal must be a Python tuple"),
        (
            changed(CALLS, tests=[{"args": [NESTED], "expected": 1}]),
            "tests[0]: test args is nested more than 64 levels",
        ),
        (changed(STDIN, language="cobol"), "language must be one of python, cpp"),
        (changed(CALLS, language="cpp"), "entry_point is for Python programs"),
        (changed(STDIN, language="cpp", preamble="x = 1"), "preamble is for Python programs"),
        (changed(CALLS, preamble="x ="), "preamble is not valid Python"),
        (changed(CALLS, checker="x ="), "checker is not valid Python"),
        (changed(CALLS, checker="def judge(): ..."), "checker defines no function check("),
        (changed(CALLS, tests=[{"args": [], "expected": 1, "compare": "checker"}]), "the task has none: add it"),
        (
            changed(CALLS, checker=CHECKER, tests=[{"args": [], "expected": 1, "compare": "exact"}]),
            "checker has no effect",
        ),
        (changed(CALLS, limits={"wall": 1}), "did you mean 'wall_s'?"),
        (changed(CALLS, limits={"wall_s": 0}), "limits.wall_s must be positive"),
        (changed(CALLS, limits={"wall_s": float("inf")}), "must be finite"),
        (changed(CALLS, target=0), "target"),
        (changed(CALLS, target=1.5), "target"),
        (changed(OPENEVOLVE, files={"evaluator.py": "def evaluate(p): ..."}), "initial_program.EXT"),
        (changed(OPENEVOLVE, files=OPENEVOLVE["files"] | {"../x": ""}), "relative path"),
        (changed(OPENEVOLVE, files=OPENEVOLVE["files"] | {"/x": ""}), "relative path"),
        (changed(OPENEVOLVE, files=OPENEVOLVE["files"] | {"evaluator.py": "x ="}), "not valid Python"),
        (changed(OPENEVOLVE, files=OPENEVOLVE["files"] | {"evaluator.py": "x = 1"}), "no function evaluate"),
        (changed(OPENEVOLVE, ranges={"a": [1, 1]}), "ranges.a must be two different"),
        (changed(OPENEVOLVE, ranges={"a": [0, float("inf")]}), "ranges.a must be two different"),
        (changed(OPENEVOLVE, config={"max_iteration": 3}), "did you mean 'max_iterations'?"),
    ],
)
def test_errors_name_the_field_and_the_fix(document: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TASK.validate_python(document)
    assert message in explain(caught.value)


def test_prompts_see_visible_tests_with_verdicts_and_only_count_the_hidden() -> None:
    task = TASK.validate_python(CALLS)
    parent = program(1, [1.0, 0.0, 0.0], components=task.components)
    context = prompt_context(task, parent, [program(2, [1.0, 1.0, 0.0])], m=3)
    assert [(test.name, test.status) for test in context.tests] == [("t00", "passed"), ("floats", "wrong")]
    assert (context.tests[0].args, context.tests[0].expected) == (([1, 2],), [2, 1])
    assert (context.hidden, context.hidden_failed, context.m) == (1, 1, 3)
    assert context.parent is not None
    assert (context.parent.passed, context.parent.total) == (1, 3)
    assert context.inspirations[0].passed == 2


def test_a_prompt_from_scratch_has_no_verdicts() -> None:
    context = prompt_context(TASK.validate_python(STDIN))
    assert [test.status for test in context.tests] == [None, None]
    assert context.tests[0].stdin == "1\n"
    assert (context.parent, context.hidden_failed) == (None, 0)


def test_an_openevolve_prompt_shows_artifacts_unless_told_not_to_and_from_scratch_the_interface() -> None:
    task = TASK.validate_python(OPENEVOLVE)
    parent = program(1, [0.5], artifacts={"log": "text"}, metrics={"a": 0.5})
    context = prompt_context(task, parent)
    assert context.parent is not None
    assert context.parent.artifacts == {"log": "text"}
    assert context.parent.metrics == {"a": 0.5}
    silent = TASK.validate_python(changed(OPENEVOLVE, config={"prompt": {"include_artifacts": False}}))
    shown = prompt_context(silent, parent).parent
    assert shown is not None
    assert shown.artifacts == {}
    assert "x = 1" in prompt_context(task).statement


def write(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document) if path.suffix == ".json" else yaml.safe_dump(document), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["task.yaml", "task.yml", "task.json"])
def test_a_task_folder(tmp_path: Path, name: str) -> None:
    write(tmp_path / "reverse" / name, CALLS)
    assert load_task(tmp_path / "reverse") == TASK.validate_python(CALLS)
    assert load_task(tmp_path / "reverse" / name) == TASK.validate_python(CALLS)


def test_the_name_defaults_to_the_folder(tmp_path: Path) -> None:
    write(tmp_path / "sorting" / "task.yaml", {key: value for key, value in CALLS.items() if key != "name"})
    assert load_task(tmp_path / "sorting").name == "sorting"


def openevolve_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name, text in OPENEVOLVE["files"].items():
        (folder / name).write_text(text)
    write(folder / "config.yaml", {"max_iterations": 7, "checkpoint_interval": 3, "llm": {"api_key": "SECRET"}})
    return folder


def test_an_openevolve_folder(tmp_path: Path) -> None:
    folder = openevolve_folder(tmp_path / "opt")
    (folder / "data").mkdir()
    (folder / "data" / "points.csv").write_text("1,2\n")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "evaluator.pyc").write_bytes(b"\xff\xfe")
    (folder / "weights.bin").write_bytes(b"\xff\xfe")
    task = load_task(folder)
    assert isinstance(task, OpenEvolveTask)
    assert set(task.files) == {"evaluator.py", "initial_program.py", "data/points.csv"}
    assert task.config.max_iterations == 7
    assert set(task.ignored) == {"checkpoint_interval", "llm.api_key", "file weights.bin"}
    assert "SECRET" not in task.model_dump_json()
    assert task.support_files.keys() == {"evaluator.py", "data/points.csv"}


def test_a_task_file_beside_openevolves_files_adds_ranges(tmp_path: Path) -> None:
    folder = openevolve_folder(tmp_path / "opt")
    write(folder / "task.yaml", {"format": "openevolve", "ranges": {"loss": [10, 0]}, "target": 0.9})
    task = load_task(folder)
    assert isinstance(task, OpenEvolveTask)
    assert (task.components, task.target, task.config.max_iterations) == (("loss",), 0.9, 7)
    assert "task.yaml" not in task.files


def test_a_suite_from_a_folder_a_file_and_json_lines_is_the_same_suite(tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    write(folder / "b" / "task.yaml", STDIN)
    write(folder / "a.json", CALLS)
    (folder / "README.md").write_text("not a task")
    suite = load_suite(folder)
    assert [task.name for task in suite.tasks] == ["reverse", "echo"]
    assert suite.name == "mixed"
    listed = load_suite(write(tmp_path / "listed.yaml", {"name": "mixed", "tasks": [CALLS, STDIN]}))
    lines = tmp_path / "mixed.jsonl"
    lines.write_text(json.dumps(CALLS) + "\n\n" + json.dumps(STDIN) + "\n")
    assert listed == suite
    assert load_suite(lines) == suite
    assert load_suite(lines).digest == suite.digest
    packed = tmp_path / "mixed.jsonl.gz"
    packed.write_bytes(gzip.compress(lines.read_bytes()))
    assert load_suite(packed) == suite


def test_the_digest_depends_on_content(tmp_path: Path) -> None:
    one = load_suite(write(tmp_path / "one.yaml", CALLS))
    two = load_suite(write(tmp_path / "two.yaml", changed(CALLS, target=0.5)))
    assert one.digest != two.digest


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.yaml", "a: [", "not valid YAML"),
        ("x.yaml", "name: a\nname: b\n", "given twice"),
        ("x.json", "{", "not valid JSON"),
        ("x.yaml", "- 1", "must be a mapping"),
        ("x.yaml", "name: a\n", "format is missing"),
        ("x.yaml", "format: test\n", "tests"),
        ("x.yaml", "tasks: 3\n", "tasks must be a list"),
        ("x.yaml", "tasks: []\n", "no usable task"),
        ("x.yaml", "tasks: []\ntitle: x\n", "unknown key 'title'"),
        ("x.yaml", "tasks: [{format: tests}]\n", "tasks[0]"),
        ("x.jsonl", "{\n", "not JSON lines"),
        ("x.jsonl.gz", "plain", "not JSON lines"),
    ],
)
def test_unreadable_files_say_what_is_wrong(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(TaskError) as caught:
        load_suite(path)
    assert message in str(caught.value)
    assert name in str(caught.value)


def test_missing_empty_and_double(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="does not exist"):
        load_task(tmp_path / "no")
    with pytest.raises(TaskError, match="does not exist"):
        load_suite(tmp_path / "no.yaml")
    with pytest.raises(TaskError, match="holds no tasks"):
        load_suite(tmp_path)
    with pytest.raises(TaskError, match="is no task"):
        load_task(tmp_path)
    with pytest.raises(TaskError, match="two tasks are named 'reverse'"):
        load_suite(write(tmp_path / "x.yaml", {"tasks": [CALLS, CALLS]}))


@pytest.mark.parametrize("path", sorted(p.parent for p in EXAMPLES.rglob("task.yaml")), ids=lambda p: p.name)
def test_every_example_task_loads(path: Path) -> None:
    assert isinstance(load_task(path), TestsTask)


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("suite.json")), ids=lambda p: p.parent.name)
def test_every_example_suite_loads(path: Path) -> None:
    assert load_suite(path).tasks


def test_the_openevolve_example_loads_and_configures_a_search() -> None:
    task = load_task(EXAMPLES / "openevolve" / "minimise")
    assert isinstance(task, OpenEvolveTask)
    SearchConfig.model_validate(task.search_settings())
