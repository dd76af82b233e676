"""Every program of ``hostile/`` in a jail, where it must not get its way, and bare, where it must."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox import CallTest, Limits, Sandbox
from tests.sandbox.observe import gone, processes_with

FOLDER = Path(__file__).with_name("hostile")
TABLE: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "table.yaml").read_text(encoding="utf-8"))
LIMITS = Limits(wall_s=20, cpu_s=10, memory_mb=128, processes=32, output_kb=64, tmpfs_mb=16)
IMPATIENT = replace(LIMITS, wall_s=2, cpu_s=1)
BARE = """
import json, sys
space = {}
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), space)
print(space["attack"](json.loads(sys.argv[2])))
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What there is to breach: secrets, listeners, a process to kill, a file to leave."""
    needle = "needle-" + os.urandom(8).hex()
    monkeypatch.setenv("VPO_API_KEY", needle)
    (tmp_path / "secret").write_text(needle, encoding="utf-8")
    (tmp_path / "scratch").mkdir()
    victim = subprocess.Popen(["sleep", "60"])
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as unix:
        tcp.bind(("127.0.0.1", 0))
        unix.bind("\0" + needle)
        callers: list[bytes] = []
        for listener in (tcp, unix):
            listener.listen()
            threading.Thread(target=_count_callers, args=(listener, callers), daemon=True).start()
        yield {
            "needle": needle,
            "secret_file": str(tmp_path / "secret"),
            "marker": str(tmp_path / "marker"),
            "port": tcp.getsockname()[1],
            "abstract": needle,
            "victim": victim.pid,
            "naptime": f"600.{int.from_bytes(os.urandom(6), 'big')}",
            "scratch": str(tmp_path / "scratch"),
            "_callers": callers,
            "_victim": victim,
        }
        for listener in (tcp, unix):
            listener.shutdown(socket.SHUT_RDWR)
    victim.kill()
    victim.wait()


def _count_callers(listener: socket.socket, callers: list[bytes]) -> None:
    try:
        while True:
            with listener.accept()[0]:
                callers.append(b"called")
    except OSError:
        return


def context_of(world: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {key: value for key, value in world.items() if not key.startswith("_")} | changes


def test_the_table_names_every_program() -> None:
    assert sorted(TABLE) == sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("name", TABLE)
async def test_a_jail_stops_it(name: str, world: dict[str, Any], sandbox: Sandbox) -> None:
    source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    test = CallTest(name=name, args=(context_of(world, bare=False, scratch="/tmp"),), expected="stopped")

    limits = IMPATIENT if TABLE[name]["ends"] == ["timeout"] else LIMITS

    (verdict,) = await sandbox.grade_calls(source, "attack", [test], limits)

    assert verdict.status in TABLE[name]["ends"], verdict
    assert "breached" not in (verdict.actual or "") or name == "forge_on_every_descriptor"
    assert verdict.peak_mb < LIMITS.memory_mb
    assert not Path(world["marker"]).exists()
    assert not world["_callers"]
    assert world["_victim"].poll() is None
    assert gone(world["naptime"])


@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if row["control"] != "none"])
def test_it_breaches_a_bare_interpreter(name: str, world: dict[str, Any], tmp_path: Path) -> None:
    context = context_of(world, bare=True)
    argv = [sys.executable, "-c", BARE, str(FOLDER / f"{name}.py"), json.dumps(context)]
    with (tmp_path / "output").open("w+b") as output:
        subprocess.run(argv, stdout=output, stderr=subprocess.DEVNULL, timeout=60, check=False)
        output.seek(0)
        breached = output.read().rstrip().endswith(b"breached")
    for pid in processes_with(world["naptime"]):
        os.kill(pid, 9)

    if TABLE[name]["control"] == "breached":
        assert breached
