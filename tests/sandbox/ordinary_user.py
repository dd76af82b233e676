"""Run a command as another kind of user when the test session is root.

The interpreter, the environment and this checkout may lie below folders that only root may enter. So the command runs
in a private mount namespace that shows them at reachable paths, laid out as a virtual environment of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DROPS = {
    "ordinary": "--reuid=54321 --regid=54321 --clear-groups --inh-caps=-all",
    "powerless root": "--bounding-set=-sys_admin --inh-caps=-sys_admin",
}


def run_as(kind: str, view: Path, arguments: list[str], timeout: float) -> subprocess.CompletedProcess[str]:
    """``python ARGUMENTS`` in the checkout as ``kind`` of user; ``view`` is an empty folder that others may enter."""
    site = Path("venv/lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages")
    shown = {
        Path(sys.base_prefix).resolve(): view / "python",
        Path(sysconfig.get_path("purelib")): view / site,
        ROOT: view / "checkout",
    }
    for target in shown.values():
        target.mkdir(parents=True)
    executable = Path(os.path.realpath(sys.executable)).relative_to(Path(sys.base_prefix).resolve())
    (view / "venv/bin").mkdir()
    (view / "venv/bin/python").symlink_to(view / "python" / executable)
    (view / "venv/pyvenv.cfg").write_text(f"home = {(view / 'python' / executable).parent}\n", encoding="utf-8")
    mounts = [f"mount --bind '{source}' '{target}'" for source, target in shown.items()]
    script = " && ".join([*mounts, f"cd '{view}/checkout'", f'exec setpriv {DROPS[kind]} "$@"'])
    environment = {
        "HOME": "/nonexistent",
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "LD_LIBRARY_PATH": str(view / "python/lib"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    argv = ["unshare", "--mount", "sh", "-c", script, "sh", str(view / "venv/bin/python"), *arguments]
    return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=timeout, check=False)
