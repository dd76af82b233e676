"""Languages besides Python: built once in a jail, run per test in another; what goes wrong has its reason."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import pytest

from sandbox import CallTest, EnvironmentUnavailable, Limits, Sandbox, Status, StdioTest, Verdict
from sandbox.building import build_job, compiler_message, read_build
from sandbox.languages import LANGUAGES, Language
from sandbox.languages.language import SEARCH_PATH

CPP = LANGUAGES["cpp"]
LIMITS = Limits(wall_s=60, cpu_s=1, memory_mb=256, processes=8, output_kb=16, tmpfs_mb=8)
SHELL = Language(
    name="shell",
    title="Shell",
    file="program.sh",
    stub="",
    tools=("sh",),
    build=("sh", "-n", "{source}"),
    run=("sh", "{source}"),
)
needs_gcc = pytest.mark.skipif(shutil.which("g++", path=SEARCH_PATH) is None, reason="there is no g++ here")


def squares(count: int) -> list[StdioTest]:
    return [StdioTest(name=f"t{i}", stdin=f"{i}\n", expected=str(i * i)) for i in range(count)]


async def cpp(sandbox: Sandbox, source: str, tests: Sequence[StdioTest] | None = None) -> list[Verdict]:
    return await sandbox.grade_stdio(source, tests or squares(1), LIMITS, language=CPP)


@needs_gcc
async def test_a_program_is_compiled_once_and_judged_per_test(sandbox: Sandbox) -> None:
    source = "#include <iostream>\nint main() { long x; std::cin >> x; std::cout << (x == 2 ? 5 : x * x) << '\\n'; }\n"

    verdicts = await cpp(sandbox, source, squares(4))

    assert [(verdict.name, verdict.status) for verdict in verdicts] == [
        ("t0", "passed"),
        ("t1", "passed"),
        ("t2", "wrong"),
        ("t3", "passed"),
    ]
    assert verdicts[2].actual == "5\n"
    assert all(0 < verdict.peak_mb < 100 and verdict.cpu_s < 1 for verdict in verdicts)


@needs_gcc
@pytest.mark.parametrize(
    ("source", "status", "message"),
    [
        ("int main() { retur 0; }", Status.ERROR, "C++ compiler: program.cpp:1:14: error: 'retur' was not declared"),
        ("int f() { return 0; }", Status.ERROR, "C++ compiler: "),
        ('#include "program.cpp"\nint main() {}', Status.ERROR, "C++ compiler: "),
        ('#include "/etc/shadow"\nint main() {}', Status.ERROR, "fatal error: /etc/shadow: "),
        ("char a[1 << 30] = {1};\nint main() {}", Status.ERROR, "C++ compiler: "),
        ("\ud800", Status.ERROR, "C++ compiler: "),
        ("", Status.ERROR, "C++ compiler: "),
        ("int main() { return 3; }", Status.ERROR, "the program exited with status 3"),
        ("int main() { volatile int *p = 0; *p = 1; }", Status.ERROR, "SIGSEGV"),
        ("int main() { for (volatile int i = 0;; i = i + 1) {} }", Status.TIMEOUT, "CPU time"),
        ('#include <cstdio>\nint main() { for (;;) puts("flood"); }', Status.OUTPUT_LIMIT, "more than 16 KiB"),
        (
            "#include <vector>\nint main() { std::vector<char> v(1u << 30, 1); return v[5] - 1; }",
            Status.ERROR,
            "bad_alloc",
        ),
        ('#include <cstdio>\nint main() { puts("1"); }', Status.WRONG, "expected output '0'"),
    ],
)
async def test_what_goes_wrong_has_its_reason(source: str, status: Status, message: str, sandbox: Sandbox) -> None:
    (verdict,) = await cpp(sandbox, source)

    assert verdict.status is status, verdict
    assert message in verdict.message.replace("‘", "'").replace("’", "'")
    assert "/source" not in verdict.message


@needs_gcc
async def test_compile_bombs_are_limited(sandbox: Sandbox) -> None:
    bombs = [
        "template <int N> struct B { B<N - 1> l; B<N + 1> r; };\nint main() { B<0> b; }",
        "#define A(x) x x x x x x x x x x\n#define B(x) A(A(A(x)))\n#define C(x) B(B(B(x)))\nint main() { C(C(;)) }",
    ]
    small = Limits(wall_s=5, cpu_s=3, memory_mb=256, processes=8, tmpfs_mb=8)
    language = Language(**{name: getattr(CPP, name) for name in CPP.__slots__} | {"build_limits": small})
    for bomb in bombs:
        (verdict,) = await sandbox.grade_stdio(bomb, squares(1), language=language)

        assert verdict.status in (Status.ERROR, Status.TIMEOUT, Status.MEMORY), verdict
        assert verdict.message.startswith("C++ compiler: ")


@needs_gcc
async def test_a_checker_and_a_compiled_program_work_together(sandbox: Sandbox) -> None:
    check = "def check(stdin, expected, actual): return int(actual) % 2 == 0"
    test = StdioTest(name="t", compare="checker")

    (verdict,) = await sandbox.grade_stdio(
        '#include <cstdio>\nint main() { puts("4"); }', [test], LIMITS, language=CPP, checker=check
    )

    assert verdict.passed, verdict


async def test_an_interpreted_language_is_checked_and_run(sandbox: Sandbox) -> None:
    good = await sandbox.grade_stdio("read x; echo $((x * x))", squares(3), language=SHELL)
    bad = await sandbox.grade_stdio("if true; then", squares(2), language=SHELL)

    assert [verdict.status for verdict in good] == ["passed"] * 3
    assert [verdict.status for verdict in bad] == ["error"] * 2
    assert bad[0].message.startswith("Shell compiler: program.sh: ")


async def test_a_missing_compiler_is_named_with_the_fix(sandbox: Sandbox) -> None:
    absent = Language(
        name="x", title="X", file="x", stub="", tools=("no-such-compiler",), install="apt install x", run=("x",)
    )

    with pytest.raises(EnvironmentUnavailable, match=r"no no-such-compiler for X is installed\. Fix: apt install x"):
        await sandbox.grade_stdio("", squares(1), language=absent)


def test_builds_are_read_whatever_they_say(sandbox: Sandbox) -> None:
    job = build_job(CPP, "x")
    failed = read_build(CPP, "no jail")

    assert job.files == {"/source/program.cpp": b"x"}
    assert isinstance(failed, Verdict)
    assert failed.status is Status.INFRASTRUCTURE
    assert compiler_message(b"/source/a.cpp:1: error: one\nnote\n/source/a.cpp:2: fatal error: two") == (
        "a.cpp:1: error: one; a.cpp:2: fatal error: two"
    )
    assert compiler_message(b"\xff\nkilled\n") == "\N{REPLACEMENT CHARACTER}; killed"


def test_every_language_says_how_it_is_run() -> None:
    for name, language in LANGUAGES.items():
        assert language.name == name
        assert language.run or name == "python"
        assert not language.tools or language.install


async def test_only_python_is_called(sandbox: Sandbox) -> None:
    (verdict,) = await sandbox.grade_calls("int main() {}", "main", [CallTest(name="t")])

    assert verdict.status is Status.ERROR
