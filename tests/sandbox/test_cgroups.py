"""Groups: where they can be made, what they bound, and that none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import CallTest, Limits, Sandbox, SandboxUnavailable, Status, Tier
from sandbox.jail import cgroups, probe
from sandbox.jail.cgroups import PREFIX, Group, NoCgroupError, Place, find_place, sweep

ROOT = Path(__file__).resolve().parents[2]
SMALL = Limits(wall_s=10, cpu_s=5, memory_mb=64, processes=32, tmpfs_mb=200)


def real_place() -> Place | None:
    try:
        return find_place()
    except NoCgroupError:
        return None


needs_cgroup = pytest.mark.skipif(real_place() is None, reason="no writable cgroup here")


def groups_of(pid: int | str = "") -> list[str]:
    place = find_place()
    return sorted({path.name for folder in place.folders for path in folder.glob(f"{PREFIX}{pid}*")})


def hold(program: str) -> str:
    """A function that forks eight children, lets each run ``program``, waits for them and says that all is well."""
    return f"""
import mmap, os, time
def f():
    for number in range(8):
        if os.fork() == 0:
            {program}
            time.sleep(3)
            os._exit(0)
    for number in range(8):
        if os.wait()[1]:
            break
    return "survived"
"""


@needs_cgroup
@pytest.mark.parametrize(
    "source",
    [
        hold("block = b'x' * (32 << 20)"),
        hold("area = mmap.mmap(-1, 24 << 20); [area.write(b'x' * 4096) for _ in range(6144)]"),
        "def f():\n"
        "    for number in range(20):\n"
        "        with open(f'/tmp/{number}', 'wb') as file:\n"
        "            file.write(b'x' * (8 << 20))\n"
        "    return 'survived'",
    ],
    ids=["forked", "shared", "files in the scratch space"],
)
async def test_all_memory_of_a_jail_together_is_bounded(source: str) -> None:
    tests = [CallTest(name="t", expected="survived"), CallTest(name="next", expected="survived")]
    async with Sandbox(concurrency=1, tier=Tier.FULL) as sandbox:
        verdicts = await sandbox.grade_calls(source, "f", tests, SMALL)
        assert sandbox.peak_mb <= SMALL.memory_mb + 1

    assert [verdict.status for verdict in verdicts] == [Status.MEMORY, Status.MEMORY], verdicts
    assert "64 MiB" in verdicts[0].message
    assert verdicts[0].tier is Tier.FULL


@needs_cgroup
@pytest.mark.parametrize(("failures", "status"), [(1, Status.PASSED), (99, Status.INFRASTRUCTURE)])
async def test_a_group_that_cannot_be_made_is_the_machines_fault(
    failures: int, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter(range(failures))

    def make(place: Place) -> Group:
        if next(left, None) is not None:
            raise OSError(28, "No space left on device", str(place.memory))
        return Group(place)

    async with Sandbox(concurrency=1, tier=Tier.FULL) as sandbox:
        monkeypatch.setattr("sandbox.jail.slots.Group", make)
        (verdict,) = await sandbox.grade_calls("def f(): return 1", "f", [CallTest(name="t", expected=1)])

    assert verdict.status is status
    if status is Status.INFRASTRUCTURE:
        assert "No space left on device" in verdict.message


@needs_cgroup
async def test_what_one_test_did_does_not_count_against_the_next() -> None:
    source = hold("block = b'x' * (32 << 20)").replace("def f():", "def f(bad):\n    if not bad: return 'survived'")
    tests = [CallTest(name=str(bad), args=(bad,), expected="survived") for bad in (False, True, False)]
    async with Sandbox(concurrency=1, tier=Tier.FULL) as sandbox:
        verdicts = await sandbox.grade_calls(source, "f", tests, SMALL)

    assert [verdict.status for verdict in verdicts] == ["passed", "memory", "passed"], verdicts


@needs_cgroup
async def test_nothing_is_left_when_the_sandbox_is_closed() -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    async with Sandbox(concurrency=2, tier=Tier.FULL) as sandbox:
        await sandbox.grade_calls("def f(): return 1", "f", [CallTest(name="t", expected=1)])
        assert groups_of(os.getpid())

    assert not groups_of(os.getpid())
    assert sorted(os.listdir("/proc/self/fd")) == before


@needs_cgroup
async def test_a_program_has_no_descriptor_but_its_own() -> None:
    # A descriptor of a cgroup's folder would let a program out of its bounds.
    source = "import os\ndef f(): return sorted(os.readlink(f'/proc/self/fd/{n}')[:5] for n in os.listdir('/proc/self/fd')[:-1])"
    async with Sandbox(concurrency=1, tier=Tier.FULL) as sandbox:
        (verdict,) = await sandbox.grade_calls(source, "f", [CallTest(name="t", expected=["pipe:"] * 4)])

    assert verdict.passed, verdict


OWNER = """
import asyncio, time
from sandbox import CallTest, Limits, Sandbox, Tier

async def main():
    sandbox = Sandbox(concurrency=1, tier=Tier.FULL)
    await sandbox.check()
    work = sandbox.grade_calls("import time\\ndef f(): time.sleep(600)", "f", [CallTest(name="t")], Limits(wall_s=600))
    job = asyncio.create_task(work)
    await asyncio.sleep(0.5)
    print("ready", flush=True)
    await job

asyncio.run(main())
"""


@needs_cgroup
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_the_groups_of_a_killed_owner_are_swept_at_the_next_start(number: signal.Signals) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ready\n"
        assert groups_of(owner.pid)
        async with Sandbox(concurrency=1, tier=Tier.FULL):
            assert groups_of(owner.pid), "a living owner's groups were swept"
        owner.send_signal(number)
        owner.wait(timeout=20)
        assert groups_of(owner.pid)
        async with Sandbox(concurrency=1, tier=Tier.FULL):
            assert not groups_of(owner.pid)
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()


@needs_cgroup
def test_a_group_is_removed_with_what_is_in_it() -> None:
    place = find_place()
    group = Group(place)
    sleeper = subprocess.Popen(["sleep", "600"])
    group.attach(sleeper.pid)

    group.remove()

    assert sleeper.wait(timeout=5) == -signal.SIGKILL
    assert not groups_of(os.getpid())


@needs_cgroup
def test_owners_that_share_half_of_their_place_leave_each_other_alone() -> None:
    mine = find_place()
    if mine.version == 2:
        pytest.skip("a place of version 2 has one half")
    other = mine.memory / f"vpo-test-{os.getpid()}"
    other.mkdir()
    theirs = Group(Place(version=1, memory=other, pids=mine.pids))
    try:
        sweep(mine)

        assert all(folder.exists() for folder in theirs._folders)
    finally:
        theirs.remove()
        other.rmdir()


@needs_cgroup
def test_bounds_can_grow_and_shrink() -> None:
    group = Group(find_place())
    try:
        for megabytes in (64, 128, 32):
            group.bound(megabytes << 20, 10)
        assert group.kills == 0
    finally:
        group.remove()


async def test_without_a_writable_cgroup_it_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def nowhere() -> Place:
        raise NoCgroupError("cgroups were switched off for a test")

    monkeypatch.setattr(probe, "find_place", nowhere)
    for _ in range(2):
        async with Sandbox() as sandbox:
            assert sandbox.tier is Tier.JAIL
    refused = Sandbox(minimum_tier=Tier.FULL)
    with pytest.raises(SandboxUnavailable, match="switched off for a test") as caught:
        await refused.check()
    await refused.close()

    assert caught.value.fix
    assert caplog.text.count("switched off for a test") == 1
    assert "vpo doctor" in caplog.text


# ---- where groups can be made: the files of /proc and of the cgroup tree, laid out in a folder


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cgroup2 tree of plain files: ``/service`` holds processes, its children get the files that the kernel makes."""
    make = Path.mkdir

    def mkdir(path: Path, *arguments: int, **named: bool) -> None:
        make(path, *arguments, **named)
        if path.name.startswith(PREFIX) and "trial" not in path.name:
            for name, content in {
                "memory.max": "max",
                "pids.max": "max",
                "cgroup.procs": "",
                "memory.peak": "4096",
            }.items():
                (path / name).write_text(content, encoding="ascii")
            (path / "memory.events").write_text("low 0\noom 2\noom_kill 2\noom_group_kill 0\n", encoding="ascii")

    monkeypatch.setattr(Path, "mkdir", mkdir)
    for folder in (tmp_path / "cgroup", tmp_path / "cgroup/service"):
        folder.mkdir()
        (folder / "cgroup.controllers").write_text("cpu memory pids", encoding="ascii")
        (folder / "cgroup.subtree_control").write_text("", encoding="ascii")
    return tmp_path / "cgroup"


def process_in(folder: Path, mountinfo: str, cgroup: str) -> Path:
    process = folder / "process"
    process.mkdir()
    (process / "mountinfo").write_text(mountinfo, encoding="utf-8")
    (process / "cgroup").write_text(cgroup, encoding="utf-8")
    return process


def test_version_2_is_bounded_through_one_tree(tree: Path, tmp_path: Path) -> None:
    process = process_in(tmp_path, f"31 23 0:28 / {tree} rw - cgroup2 cgroup2 rw\n", "0::/service\n")

    place = find_place(process)
    group = Group(place)
    (folder,) = group._folders
    group.bound(1 << 20, 7)
    group.attach(123)

    assert place == Place(version=2, memory=tree / "service", pids=tree / "service")
    assert (tree / "service/cgroup.subtree_control").read_text(encoding="ascii") == "+memory +pids"
    assert (folder / "memory.max").read_text(encoding="ascii") == str(1 << 20)
    assert (folder / "pids.max").read_text(encoding="ascii") == "7ax"  # a plain file keeps what is not overwritten
    assert (folder / "cgroup.procs").read_text(encoding="ascii") == "123"
    assert group.kills == 2
    assert group.peak_bytes == 4096
    for lock in group._locks:
        os.close(lock)


def test_version_2_without_delegated_controllers_is_no_place(tree: Path, tmp_path: Path) -> None:
    for folder in (tree, tree / "service"):
        (folder / "cgroup.controllers").write_text("cpu pids", encoding="ascii")
    process = process_in(tmp_path, f"31 23 0:28 / {tree} rw - cgroup2 cgroup2 rw\n", "0::/service\n")

    with pytest.raises(NoCgroupError, match="memory is not delegated"):
        find_place(process)


def test_no_cgroup_file_system_is_no_place(tmp_path: Path) -> None:
    process = process_in(tmp_path, "31 23 0:28 / /proc rw - proc proc rw\n", "0::/\n")

    with pytest.raises(NoCgroupError, match="no cgroup file system"):
        find_place(process)


def test_version_1_is_found_in_a_container_that_sees_the_hosts_paths(tmp_path: Path) -> None:
    mounts = "".join(
        f"31 23 0:28 /docker/abc {tmp_path / name} rw,relatime - cgroup cgroup rw,{name}\n"
        for name in ("memory", "pids")
    )
    for name in ("memory", "pids"):
        (tmp_path / name / "sub").mkdir(parents=True)
    process = process_in(tmp_path, mounts, "4:memory:/docker/abc/sub\n8:pids:/docker/abc\n0::/\n")

    assert find_place(process) == Place(version=1, memory=tmp_path / "memory/sub", pids=tmp_path / "pids")


# ---- version 2 on the kernel's own tree, with a controller that this machine has left there


@pytest.fixture
def kernel_tree(tmp_path: Path) -> Iterator[tuple[Path, str, Path]]:
    """A private group of the cgroup2 tree that has a controller: the folder, the controller, a process in it."""
    mounted = cgroups._mounts(Path("/proc/self")).get("")
    if mounted is None:
        pytest.skip("no cgroup2 tree is mounted")
    top = mounted[0]
    controllers = (top / "cgroup.controllers").read_text(encoding="ascii").split()
    if not controllers or not os.access(top, os.W_OK):
        pytest.skip("the cgroup2 tree is not writable or has no controller")
    name = controllers[0]
    had = name in (top / "cgroup.subtree_control").read_text(encoding="ascii").split()
    cgroups._write(top / "cgroup.subtree_control", f"+{name}")
    private = top / f"vpo-test-{os.getpid()}"
    private.mkdir()
    line = f"31 23 0:28 /{private.name} {private} rw - cgroup2 cgroup2 rw\n"
    try:
        yield private, name, process_in(tmp_path, line, f"0::/{private.name}\n")
    finally:
        for folder in sorted(private.rglob("*/"), reverse=True):
            if folder.is_dir():
                cgroups._kill_all(folder)
                time.sleep(0.05)
                folder.rmdir()
        private.rmdir()
        if not had:
            cgroups._write(top / "cgroup.subtree_control", f"-{name}")


def test_the_kernels_version_2_takes_locks_kills_and_removes(kernel_tree: tuple[Path, str, Path]) -> None:
    private, name, process = kernel_tree
    place = find_place(process, [name])
    group = Group(place)
    sleeper = subprocess.Popen(["sleep", "600"])
    group.attach(sleeper.pid)

    assert place == Place(version=2, memory=private, pids=private)
    assert sweep(place) == []
    for lock in group._locks:  # as if the owner had died
        os.close(lock)
    assert sweep(place) == [group._folders[0].name]
    assert sleeper.wait(timeout=5) == -signal.SIGKILL


def test_the_processes_of_a_containers_top_group_make_way(kernel_tree: tuple[Path, str, Path]) -> None:
    private, name, process = kernel_tree
    resident = subprocess.Popen(["sleep", "600"])
    try:
        cgroups._write(private / "cgroup.procs", str(resident.pid))

        place = find_place(process, [name])

        assert place.memory == private
        moved = (private / cgroups.RESIDENCE / "cgroup.procs").read_text(encoding="ascii").split()
        assert moved == [str(resident.pid)]
    finally:
        resident.kill()
        resident.wait()
