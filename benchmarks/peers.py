"""Other people's packages to compare with, each in a virtual environment of its own."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import platformdirs


def interpreter_with(requirement: str, *, module: str) -> str:
    """A Python that can import ``module``: this one if it can, else one of an environment made for ``requirement``.

    The environment lies in the user's cache folder and is used again. Raises :class:`RuntimeError` where it cannot be
    installed.
    """
    if importlib.util.find_spec(module) is not None:
        return sys.executable
    folder = Path(platformdirs.user_cache_dir("vpo-search")) / "peers" / requirement.replace("=", "-")
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", requirement]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"the peer {requirement} cannot be installed: {done.stderr.strip()[-500:]}")
        (folder / "installed").touch()
    return str(python)
