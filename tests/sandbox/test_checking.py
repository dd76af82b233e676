"""Custom checkers in real jails: what they see, what they may say, and that they and candidates never meet."""

from __future__ import annotations

import pytest

from sandbox import CallTest, Limits, Sandbox, Status, StdioTest

CHECK = """
def check(args, expected, actual):
    if actual is None:
        raise TypeError("nothing to check")
    return [actual == args[0], f"{expected}: {actual}"]
"""


def checked(count: int) -> list[CallTest]:
    return [CallTest(name=f"t{i}", args=(i,), expected="seen", compare="checker") for i in range(count)]


async def test_each_answer_has_its_check_and_the_other_verdicts_stay(sandbox: Sandbox) -> None:
    source = "def f(x):\n    return [0, 5, None, 3, 4][x]"
    mixed = [*checked(4), CallTest(name="plain", args=(4,), expected=4)]

    verdicts = await sandbox.grade_calls(source, "f", mixed, checker=CHECK)

    assert [verdict.status for verdict in verdicts] == ["passed", "wrong", "error", "passed", "passed"]
    assert verdicts[1].message == "seen: 5"
    assert verdicts[2].message == "the task's checker failed: TypeError: nothing to check (line 4)"
    assert [verdict.actual for verdict in verdicts[:3]] == ["0", "5", "None"]


async def test_a_failure_of_the_candidate_needs_no_checker(sandbox: Sandbox) -> None:
    (verdict,) = await sandbox.grade_calls("def f(x): 1 / 0", "f", checked(1), checker="never compiled (")

    assert verdict.status is Status.ERROR
    assert "ZeroDivisionError" in verdict.message


async def test_standard_output_is_checked_as_text(sandbox: Sandbox) -> None:
    check = "def check(stdin, expected, actual):\n    return len(actual.split()) / int(stdin)"
    test = StdioTest(name="t", stdin="4", expected="", compare="checker")

    (verdict,) = await sandbox.grade_stdio("print('a b c')", [test], checker=check)

    assert (verdict.status, verdict.reward) == (Status.WRONG, 0.75)
    assert verdict.message == "the checker rejects a b c\n (score 0.75)"


@pytest.mark.parametrize(
    ("checker", "message"),
    [
        ("def check(a, b): return True", "TypeError: check() takes 2 positional arguments but 3 were given"),
        ("def judge(args, expected, actual): return True", "the program defines no function 'check'"),
        ("def check(args, expected, actual):\n    raise SystemExit(0)", "SystemExit"),
        ("def check(args, expected, actual):\n    import os; os._exit(0)", "ended without an answer"),
        ("def check(args, expected, actual): return float('nan')", "check returned nan"),
        ("def check(", "SyntaxError"),
    ],
)
async def test_a_checker_that_fails_says_so(checker: str, message: str, sandbox: Sandbox) -> None:
    (verdict,) = await sandbox.grade_calls("def f(x): return x", "f", checked(1), checker=checker)

    assert verdict.status is Status.ERROR
    assert verdict.message.startswith("the task's checker failed: ")
    assert message in verdict.message


async def test_a_checker_may_print_and_a_candidate_cannot_fool_it(sandbox: Sandbox) -> None:
    checker = "def check(args, expected, actual):\n    print('x' * 10**6)\n    return actual == expected"
    source = """
class Equal:
    def __eq__(self, other): return True
class Odd(int):
    def __eq__(self, other): return True
    __hash__ = None
def f(x):
    return [Equal(), Odd(3), '{"value":true}'][x]
"""
    verdicts = await sandbox.grade_calls(source, "f", checked(3), Limits(output_kb=16), checker=checker)

    assert [verdict.status for verdict in verdicts] == ["error", "wrong", "wrong"]


async def test_the_checker_has_a_jail_of_its_own(sandbox: Sandbox) -> None:
    source = "import os\ndef f(x):\n    open('/tmp/left', 'w').close()\n    return os.environ.setdefault('SEEN', 'x')"
    checker = "import os\ndef check(args, expected, actual):\n    return os.listdir('/tmp') == [] and 'SEEN' not in os.environ"

    verdicts = await sandbox.grade_calls(source, "f", checked(2), checker=checker)

    assert all(verdict.passed for verdict in verdicts), verdicts


async def test_a_checker_must_be_there_when_a_test_needs_it(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match="no checker is given"):
        await sandbox.grade_calls("", "f", checked(1))


async def test_functions_can_be_asked_directly(sandbox: Sandbox) -> None:
    result = await sandbox.run_function("def f(x): return {'a': (x, x)}", "f", [(1, 2)])
    failed = await sandbox.run_function("def f(x): 1 / 0", "f", [1])

    assert result.value == {"a": [[1, 2], [1, 2]]}
    assert (failed.verdict.status, failed.value) == (Status.ERROR, None)


async def test_a_preamble_runs_first_and_moves_no_line(sandbox: Sandbox) -> None:
    preamble = "from typing import List\nimport math\n\n\ndef helper(x):\n    return math.floor(x)\n"
    good = "def f(x: List[int]):\n    return helper(x[0])"
    bad = "def f(x):\n    return helper(1 / 0)"
    own = "def helper(x):\n    return 7\ndef f(x):\n    return helper(x)"
    test = [CallTest(name="t", args=([2.5],), expected=2)]

    verdicts = [(await sandbox.grade_calls(source, "f", test, preamble=preamble))[0] for source in (good, bad, own)]
    (broken,) = await sandbox.grade_calls(good, "f", test, preamble="import nowhere")
    (printed,) = await sandbox.grade_stdio("print(helper(1.5))", [StdioTest(name="t", expected="1")], preamble=preamble)

    assert [verdict.status for verdict in verdicts] == ["passed", "error", "wrong"]
    assert verdicts[1].message == "ZeroDivisionError: division by zero (line 2)"
    assert broken.message == "RuntimeError: the task's preamble failed: ModuleNotFoundError: No module named 'nowhere'"
    assert printed.passed, printed


async def test_tuples_sets_and_keys_arrive_as_they_are(sandbox: Sandbox) -> None:
    source = "def f(*args): return [type(a).__name__ for a in args] + [list(args[2])[0] + 1]"
    test = CallTest(name="t", args=((1,), {2}, {5: "a"}, b"x"), expected=["tuple", "set", "dict", "bytes", 6])

    (verdict,) = await sandbox.grade_calls(source, "f", [test])

    assert verdict.passed, verdict
