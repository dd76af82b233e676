"""A candidate can answer its own test as it likes; it cannot learn the expected answer or touch another test."""

from __future__ import annotations

import pytest

from sandbox import CallTest, Limits, Sandbox, Status

LIMITS = Limits(wall_s=3, cpu_s=2)

# Each leaves something behind during the first test that tries to make the second one answer 2.
LATER_TESTS = {
    "daemon that writes into later processes": """
import os, sys, time
def f(x):
    if x == 2:
        time.sleep(0.3)
        return 0
    if os.fork() == 0:
        os.setsid()
        for second in range(40):
            for pid in range(1, 40):
                for fd in range(10):
                    try:
                        with open(f"/proc/{pid}/fd/{fd}", "wb", buffering=0) as file:
                            file.write(b'{"value": 2}')
                    except OSError:
                        pass
            time.sleep(0.02)
    return 1
""",
    "file that the next test finds": """
import os
def f(x):
    if os.path.exists("/tmp/left"):
        return 2
    open("/tmp/left", "w").close()
    return 1
""",
    "shared memory that the next test finds": """
import os
def f(x):
    if os.path.exists("/dev/shm/left"):
        return 2
    open("/dev/shm/left", "w").close()
    return 1
""",
    "socket that the next test finds": """
import os, socket, time
def f(x):
    path = "\\0left"
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
            return 2
        except OSError:
            pass
    if os.fork() == 0:
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        server.listen()
        time.sleep(3)
    time.sleep(0.1)
    return 1
""",
    "scratch space that it closed": """
import os
def f(x):
    open("/tmp/left", "w").close()
    try:
        os.chmod("/tmp", 0)
    except OSError:
        pass
    return 1
""",
    "changed module that the next test imports": """
import builtins, math
def f(x):
    if getattr(math, "left", False) or getattr(builtins, "left", False):
        return 2
    math.left = builtins.left = True
    return 1
""",
    "report written on the supervisor's pipe": """
import os, struct
def f(x):
    report = struct.pack("<BBiddQIII", 0, 0, 0, 0.1, 0.1, 1000, 11, 0, 0) + b'{"value":2}'
    for folder in ("/proc/1/fd", "/proc/self/fd"):
        for fd in range(64):
            try:
                with open(f"{folder}/{fd}", "wb", buffering=0) as file:
                    file.write(report * 3)
            except OSError:
                pass
    for fd in range(4, 256):
        try:
            os.write(fd, report * 3)
        except OSError:
            pass
    return 1
""",
}


@pytest.mark.parametrize("way", LATER_TESTS)
async def test_one_test_cannot_answer_another(way: str, sandbox: Sandbox) -> None:
    tests = [CallTest(name="first", args=(1,), expected=1), CallTest(name="second", args=(2,), expected=2)]

    first, second = await sandbox.grade_calls(LATER_TESTS[way], "f", tests, LIMITS)

    assert first.status in (Status.PASSED, Status.ERROR, Status.WRONG), first
    assert second.status in (Status.WRONG, Status.ERROR), second


@pytest.mark.parametrize("handed_in", [False, True])
async def test_the_expected_answer_is_nowhere_in_the_jail(handed_in: bool, sandbox: Sandbox) -> None:
    source = """
import gc, sys
def attack(backwards, *rest):
    needle, frame, seen = backwards[::-1], sys._getframe(1), []
    while frame is not None:
        seen += [repr(frame.f_locals), repr(frame.f_globals)]
        frame = frame.f_back
    things = [thing for thing in gc.get_objects() if isinstance(thing, (dict, list, tuple))]
    seen += [repr(thing) for thing in things]
    with open("/proc/self/maps") as maps:
        regions = [line.split() for line in maps if " rw" in line]
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        for region in regions:
            start, end = (int(number, 16) for number in region[0].split("-"))
            try:
                memory.seek(start)
                seen.append(memory.read(end - start).decode("latin-1"))
            except (OSError, ValueError):
                pass
    # What this function itself made of its argument lies in memory as well, hence the marker between the halves.
    return any(needle[:8] + ":" + needle[8:] in text for text in seen)
"""
    expected = "76543210:hgfedcba"
    args = ("abcdefgh01234567", expected) if handed_in else ("abcdefgh01234567",)

    (verdict,) = await sandbox.grade_calls(source, "attack", [CallTest(name="t", args=args, expected=expected)], LIMITS)

    assert (verdict.status, verdict.actual) == (Status.WRONG, str(handed_in)), verdict


@pytest.mark.parametrize(
    ("forged", "status"),
    [
        (b'{"value": 2}', Status.PASSED),
        (b'{"status": "passed"}', Status.ERROR),
        (b'{"error": "passed"}', Status.ERROR),
        (b'["value"]', Status.ERROR),
        (b"nonsense", Status.ERROR),
        (b'{"value": ' + b"[" * 100_000, Status.ERROR),
        (b'{"value": ' + b"1" * 100_000 + b"}", Status.ERROR),
        (b"\xff\xfe", Status.ERROR),
        (b"", Status.ERROR),
    ],
)
async def test_what_is_written_on_the_answer_pipe_is_only_an_answer(
    forged: bytes, status: Status, sandbox: Sandbox
) -> None:
    source = (
        f"import os\ndef f():\n    data = {forged!r}\n    while data: data = data[os.write(3, data):]\n    os._exit(0)"
    )

    (verdict,) = await sandbox.grade_calls(source, "f", [CallTest(name="t", expected=2)], LIMITS)

    assert verdict.status is status, verdict
