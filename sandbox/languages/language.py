"""What a language is to the sandbox."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field

from sandbox.errors import EnvironmentUnavailable
from sandbox.limits import Limits

SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"  # jails see no programs from elsewhere
BUILD_LIMITS = Limits(wall_s=30, cpu_s=30, memory_mb=1024, processes=32, output_kb=256, tmpfs_mb=64)


@dataclass(frozen=True, kw_only=True, slots=True)
class Language:
    """How programs of a language are checked, compiled and run.

    name: as tasks give it. title: as people write it. file: the source's file name.
    tools: programs that must be installed below ``/usr``. install: the command that does it.
    build: run once per candidate in a jail of its own, to compile the program or to check it; its exit status decides,
        its standard error says why. Empty for languages that need neither.
    run: run once per test. Empty for Python, which the jail's own interpreter runs without starting another.
    stub: a program that builds and answers nothing.

    In ``build`` and ``run``, ``{source}`` is the source file and ``{program}`` the file that ``build`` is to make. A
    ``build`` that names no ``{program}`` only checks.
    """

    name: str
    title: str
    file: str
    stub: str
    tools: tuple[str, ...] = ()
    install: str = ""
    build: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    build_limits: Limits = field(default=BUILD_LIMITS)

    @property
    def compiles(self) -> bool:
        """Whether ``build`` makes a file."""
        return any("{program}" in part for part in self.build)

    def require_tools(self) -> None:
        """Raise :class:`EnvironmentUnavailable` for a tool that is not installed here."""
        missing = [tool for tool in self.tools if shutil.which(tool, path=SEARCH_PATH) is None]
        if missing:
            raise EnvironmentUnavailable(f"no {' and no '.join(missing)} for {self.title} is installed", self.install)
