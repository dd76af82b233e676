"""The positive control: each program against a bare interpreter and a grader that trusts it, as many graders do.

The grader shares a process with the program, compares with ``==``, prints a line of JSON and leaves with a status. The
control is bounded so that it cannot harm the machine: programs are finite by themselves, and limits stop what is not.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from tests.sandbox.hostile.table import Row
from tests.sandbox.hostile.world import World

TIMEOUT_S = 60.0
SLOW_S = 2.5  # a caller who waits for the pipes to close is held up for three seconds
GRADER = """
import json, resource, sys

for name, bound in (("RLIMIT_CPU", 30), ("RLIMIT_FSIZE", 1 << 37), ("RLIMIT_CORE", 0)):
    resource.setrlimit(getattr(resource, name), (bound, bound))

def grade(source, context, expected):
    space = {"__name__": "candidate"}
    exec(compile(open(source, errors="surrogatepass").read(), source, "exec"), space)
    actual = space["attack"](context)
    passed = actual == expected
    print(json.dumps({"passed": passed, "actual": str(actual)}))
    sys.exit(0 if passed else 1)

grade(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3])
"""


def bare_breaches(row: Row, world: World) -> list[str]:
    """Run a program without a jail; how it got its way."""
    candidate = world.folder / "candidate.py"
    candidate.write_text(row.source, encoding="utf-8", errors="surrogatepass")
    if row.neighbour:
        (world.scratch / "neighbour").write_text(world.needle, encoding="utf-8")
    expected = world.expected if row.goal == "forge" else "stopped"
    context = world.context(bare=True, scratch=str(world.scratch), tmpfs_mb=16, piece_mb=16, bound_mb=64)
    argv = [sys.executable, "-c", GRADER, str(candidate), json.dumps(context), expected]
    start = time.monotonic()
    status, output = _run(argv, world)
    breaches = world.touched(patience_s=0.2)
    world.end_survivors()
    if time.monotonic() - start > SLOW_S and row.kind == "sleeping":
        breaches.append("it held its caller up")
    if row.goal == "forge" and (status == 0 or b'{"passed": true' in output):
        breaches.append("it passed")
    if row.goal == "answer" and b"breached" in output:
        breaches.append("it got its way")
    return breaches


def _run(argv: list[str], world: World) -> tuple[int, bytes]:
    """Status and output, read to the end of the pipe as ``subprocess.run(capture_output=True)`` does."""
    process = subprocess.Popen(
        argv,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=world.scratch,
        close_fds=False,
        start_new_session=True,
    )
    try:
        output = process.communicate(timeout=TIMEOUT_S)[0]
    except subprocess.TimeoutExpired:
        output = b""
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    return process.returncode, output


def must_breach(row: Row) -> bool:
    """Whether the program must get its way here."""
    return row.control == "breached" or (row.control == "root" and os.geteuid() == 0)


def clear(folder: Path) -> None:
    """Remove what a program wrote, however deep and whatever it is called."""
    subprocess.run(["rm", "-rf", "--", str(folder)], check=False, stderr=subprocess.DEVNULL)
