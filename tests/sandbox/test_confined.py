"""Tier ``confined``: what a program can and cannot do without namespaces around it, as root and as anybody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from sandbox import CallTest, Limits, Sandbox, SandboxUnavailable, Status, StdioTest, Tier
from sandbox.jail import confinement, launcher, probe
from sandbox.jail.confinement import Confinement
from sandbox.jail.launcher import inside_code
from tests.sandbox.observe import appeared, gone

ROOT = Path(__file__).resolve().parents[2]
SMALL = Limits(wall_s=10, cpu_s=5, memory_mb=128, processes=8, output_kb=16, tmpfs_mb=8)


@pytest.fixture
async def confined() -> AsyncIterator[Sandbox]:
    async with Sandbox(concurrency=2, tier=Tier.CONFINED) as sandbox:
        yield sandbox


def scratch_folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("vpo-sandbox-*"))


async def test_an_honest_program_has_what_it_needs(confined: Sandbox) -> None:
    source = """
import threading
def f(x):
    import asyncio, colorsys, decimal, hashlib, random, statistics, tempfile
    async def double(): return 2 * x
    thread = threading.Thread(target=print); thread.start(); thread.join()
    with tempfile.TemporaryFile() as file:
        file.write(b"x")
    return [asyncio.run(double()), hashlib.sha256(b"").hexdigest()[:4], random.random() < 1]
"""
    (call,) = await confined.grade_calls(source, "f", [CallTest(name="t", args=(2,), expected=[4, "e3b0", True])])
    (stdio,) = await confined.grade_stdio("print(int(input()) + 1)", [StdioTest(name="t", stdin="1\n", expected="2")])

    assert call.passed, call
    assert stdio.passed, stdio
    assert call.tier is stdio.tier is confined.tier is Tier.CONFINED


# Each returns True if it got its way. `secret` is a file of the sandbox's owner, `victim` one of its processes.
ATTACKS = {
    "fork": "return os.fork() >= 0",
    "vfork and run": "import subprocess; return subprocess.run(['/bin/true']).returncode == 0",
    "run another program": "os.execv('/bin/true', ['true'])",
    "signal another process": "os.kill(victim, 0); return True",
    "signal the supervisor": "os.kill(os.getppid(), 9); return True",
    "open a handle on another process": "os.pidfd_open(victim); return True",
    "trace": "return ctypes.CDLL(None).ptrace(16, victim, 0, 0) == 0",
    "outlive the supervisor": "return ctypes.CDLL(None).prctl(1, 0, 0, 0, 0) == 0",
    "open a network socket": "socket.socket(); return True",
    "open a unix socket": "socket.socket(socket.AF_UNIX); return True",
    "read a file of the owner": "return bool(open(secret).read())",
    "write a file of the owner": "open(secret, 'a'); return True",
    "truncate a file of the owner": "os.truncate(secret, 0); return True",
    "change the mode of a file": "os.chmod(secret, 0o777); return True",
    "touch a file": "os.utime(secret); return True",
    "rename a file": "os.rename(secret, 'mine'); return True",
    "link a file into the scratch space": "os.link(secret, 'mine'); return bool(open('mine').read())",
    "read through a symbolic link": "os.symlink(secret, 'mine'); return bool(open('mine').read())",
    "remove a file": "os.unlink(secret); return True",
    "make a file elsewhere": "open(os.path.dirname(secret) + '/made', 'w'); return True",
    "read the accounts": "return bool(open('/etc/passwd').read())",
    "list other scratch folders": "return bool(os.listdir('..'))",
    "read an environment": "return bool(open(f'/proc/{victim}/environ', 'rb').read())",
    "read the launcher's environment": "return bool(open('/proc/self/environ', 'rb').read())",
    "list processes": "return bool(os.listdir('/proc'))",
    "use shared memory": "from multiprocessing import shared_memory as s; s.SharedMemory(create=True, size=9); return True",
    "be root": "return 0 in os.getresuid()",
    "become root": "os.setuid(0); return True",
    "make a namespace": "return ctypes.CDLL(None).unshare(0x10000000) == 0",
}


@pytest.mark.parametrize("name", ATTACKS)
async def test_it_stops(name: str, confined: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("needle", encoding="utf-8")
    secret.chmod(0o666)
    victim = subprocess.Popen(["sleep", "60"])
    source = f"import ctypes, os, socket\ndef f(secret, victim):\n    {ATTACKS[name]}"
    try:
        (verdict,) = await confined.grade_calls(
            source, "f", [CallTest(name=name, args=(str(secret), victim.pid), expected=True)], SMALL
        )
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()

    assert verdict.status is (Status.WRONG if verdict.actual == "False" else Status.ERROR), verdict
    assert secret.read_text(encoding="utf-8") == "needle"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("open('a', 'wb').write(b'x' * (9 << 20))", Status.ERROR),
        ("[open(str(n), 'wb').write(b'x' * (3 << 20)) for n in range(99)]; time.sleep(9)", Status.OUTPUT_LIMIT),
        pytest.param(
            "[os.close(os.open(str(n), os.O_CREAT)) for n in range(4500)]; time.sleep(60)",
            Status.OUTPUT_LIMIT,
            marks=pytest.mark.soak,  # the supervisor counts by looking, which is slow on a busy machine
        ),
        ("len(bytearray(1 << 30))", Status.MEMORY),
        ("\n    while True: pass", Status.TIMEOUT),
        ("print('x' * 99999)", Status.OUTPUT_LIMIT),
        ("[threading.Thread(target=time.sleep, args=(9,)).start() for _ in range(999)]", Status.ERROR),
    ],
)
async def test_everything_is_bounded(body: str, status: Status, confined: Sandbox) -> None:
    slow = "range(4500)" in body
    limits = replace(SMALL, wall_s=60, cpu_s=40) if slow else replace(SMALL, wall_s=8, cpu_s=1)

    (verdict,) = await confined.grade_calls(
        f"import os, threading, time\ndef f():\n    {body}", "f", [CallTest(name="t")], limits
    )

    assert verdict.status is status, verdict


async def test_nothing_is_left_in_the_file_system(confined: Sandbox) -> None:
    before = scratch_folders()
    source = """
import os
def f():
    os.mkdir("closed", 0o000)
    for _ in range(300):
        os.mkdir("d")
        os.chdir("d")
"""
    await confined.grade_calls(source, "f", [CallTest(name=str(n)) for n in range(3)], SMALL)

    assert scratch_folders() <= before


async def test_tests_do_not_see_each_others_files(confined: Sandbox) -> None:
    source = "import os\ndef f():\n    seen = os.listdir('.')\n    open('x', 'w').close()\n    return seen"

    verdicts = await confined.grade_calls(source, "f", [CallTest(name=str(n), expected=[]) for n in range(3)])

    assert all(verdict.passed for verdict in verdicts), verdicts


async def test_the_interpreter_is_found_where_others_may_not_enter_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confinement, "open_to_others", lambda _: False)
    source = "def f():\n    import encodings.idna, sqlite3, xml.dom.minidom\n    return True"

    async with Sandbox(tier=Tier.CONFINED) as sandbox:
        (verdict,) = await sandbox.grade_calls(source, "f", [CallTest(name="t", expected=True)])

    assert verdict.passed, verdict


async def test_evaluators_need_a_jail(confined: Sandbox) -> None:
    with pytest.raises(SandboxUnavailable, match="cannot show a program the files"):
        await confined.run_evaluator("", {"evaluator.py": "def evaluate(path): return {'x': 1}"})


async def test_it_is_used_only_on_purpose(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(probe, "installed_bubblewraps", lambda: iter(()))
    refused = Sandbox()
    with pytest.raises(SandboxUnavailable, match="there is no bwrap"):
        await refused.check()
    await refused.close()

    async with Sandbox(minimum_tier=Tier.CONFINED) as sandbox:
        assert sandbox.tier is Tier.CONFINED
    assert "only confined" in caplog.text


async def test_without_landlock_it_is_refused_with_reason_and_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    # The number of a system call that no kernel has: what one without Landlock answers.
    text = resources.files("sandbox.inside").joinpath("confinement.py").read_text(encoding="utf-8")
    changed = compile(text.replace("444, 445, 446", "9444, 9445, 9446"), "<confinement>", "exec")
    monkeypatch.setattr(launcher, "inside_code", lambda name: changed if name == "confinement" else inside_code(name))
    sandbox = Sandbox(tier=Tier.CONFINED)
    with pytest.raises(SandboxUnavailable, match="Landlock is not available: Function not implemented") as caught:
        await sandbox.check()
    await sandbox.close()

    assert "Landlock" in caught.value.fix


OWNER = """
import asyncio, sys
from sandbox import CallTest, Limits, Sandbox, Tier

SOURCE = '''
import ctypes, time
def f(mark):
    ctypes.CDLL(None).prctl(15, mark.encode(), 0, 0, 0)
    open(mark, "w").close()
    time.sleep(600)
'''

async def main():
    sandbox = Sandbox(tier=Tier.CONFINED)
    await sandbox.grade_calls(SOURCE, "f", [CallTest(name="t", args=(sys.argv[1],))], Limits(wall_s=600))

asyncio.run(main())
"""


def named(mark: str) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "comm").read_text(encoding="utf-8").strip() == mark:
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("number", [9, 15])
async def test_killing_the_owner_kills_the_program(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.sandbox.observe.processes_with", named)
    before = scratch_folders()
    mark = f"vpo-{os.urandom(4).hex()}"
    owner = subprocess.Popen([sys.executable, "-c", OWNER, mark], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        assert appeared(mark)
        owner.send_signal(number)
        owner.wait(timeout=20)
    finally:
        owner.kill()
        owner.wait()

    assert gone(mark)
    async with Sandbox(tier=Tier.CONFINED):  # sweeps what the owner could not remove
        assert scratch_folders() <= before


def test_the_settings_can_travel() -> None:
    found: dict[str, Any] = confinement.settings(SMALL)

    assert json.loads(json.dumps({**found, "filter": ""}))["scratch_bytes"] == 8 << 20
    assert Confinement(privileged=True).tier is Tier.CONFINED
