"""What a task's evaluator needs of this machine: installed packages, folders that the operator offers by name."""

from __future__ import annotations

import importlib.util
import os
import stat
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from sandbox.errors import EnvironmentUnavailable


def require_packages(names: Sequence[str]) -> None:
    """Raise :class:`EnvironmentUnavailable` unless each is installed here, as a distribution or a top-level module."""
    missing = [name for name in names if not _is_installed(name)]
    if missing:
        word = "package" if len(missing) == 1 else "packages"
        raise EnvironmentUnavailable(
            f"Python {word} {', '.join(missing)} not installed",
            f"uv pip install {' '.join(missing)}, in the environment that the search runs in",
        )


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return "." not in name and importlib.util.find_spec(name) is not None
    except ValueError:
        return False
    return True


def offered_folders(names: Sequence[str], offered: Mapping[str, Path]) -> dict[str, str]:
    """The folders by name. Raises :class:`EnvironmentUnavailable` for one that is not offered or cannot be read.

    A task never names a path of the machine: whoever sends tasks could otherwise read anything on it.
    """
    found: dict[str, str] = {}
    for name in names:
        if name not in offered:
            known = f"those offered are {', '.join(sorted(offered))}" if offered else "none is offered"
            raise EnvironmentUnavailable(
                f"folder {name!r} is not offered here ({known})",
                f'set VPO_FOLDERS to a JSON object such as {{"{name}": "/path/of/it"}}',
            )
        folder = offered[name].resolve()
        if not folder.is_dir():
            raise EnvironmentUnavailable(f"folder {name!r} is {folder}, which is no folder", "correct VPO_FOLDERS")
        if os.geteuid() == 0 and folder.stat().st_mode & 0o005 != 0o005:
            mode = stat.filemode(folder.stat().st_mode)
            raise EnvironmentUnavailable(
                f"folder {name!r} is closed to the unprivileged user that programs run as ({mode})",
                f"chmod -R o+rX {folder}",
            )
        found[name] = str(folder)
    return found
