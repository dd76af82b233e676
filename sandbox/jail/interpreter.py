"""The Python that runs inside a jail: the one that runs here, without its virtual environment."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

NEUTRAL = "/interpreter"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """executable: its path inside the jail. binds: (outside, inside) folders to mount read-only besides ``/usr``.
    library_path: where inside the jail its shared library lies if the loader may not find it by itself, else ``""``.
    """

    executable: str
    binds: tuple[tuple[str, str], ...]
    library_path: str


@cache
def running_interpreter() -> Interpreter:
    """Find the base interpreter of the running environment.

    One that lives outside ``/usr`` appears at a neutral path, so that it works when its real home is closed to the
    jail's user and so that the jail does not learn the path.
    """
    base, executable = base_interpreter()
    if base.is_relative_to("/usr"):
        return Interpreter(str(executable), (), "")
    inside = Path(NEUTRAL, executable.relative_to(base))
    shared = any((base / "lib").glob("libpython*.so*"))
    return Interpreter(str(inside), ((str(base), NEUTRAL),), f"{NEUTRAL}/lib" if shared else "")


def base_interpreter() -> tuple[Path, Path]:
    """Folder and executable of the Python that the running environment is made from."""
    executable = getattr(sys, "_base_executable", None) or sys.executable
    return Path(sys.base_prefix).resolve(), Path(os.path.realpath(executable))
