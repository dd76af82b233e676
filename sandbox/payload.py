"""What goes into the jail with a program that is called or run: its tests, its environment, what to import early."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sandbox.inside.supervisor import SCRATCH

ANSWER_BYTES = 1 << 20
ENVIRONMENT = {"HOME": SCRATCH, "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", "PYTHONHASHSEED": "0", "TZ": "UTC"}
PRELOADABLE = """
abc array bisect collections copy dataclasses datetime decimal enum fractions functools heapq io itertools json math
operator random re statistics string time typing
"""
IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+([a-z_]+(?:[ \t]*,[ \t]*[a-z_]+)*)", re.MULTILINE)


def call_payload(source: str, entry_point: str, inputs: Sequence[Sequence[Any]], preamble: str = "") -> dict[str, Any]:
    """Call ``entry_point`` of a Python program once per element of ``inputs``, its positional arguments."""
    tests = [{"args": list(args), "stdin": b""} for args in inputs]
    return {"kind": "calls", "entry_point": entry_point, "tests": tests} | _python(source, preamble)


def stdio_payload(source: str, inputs: Sequence[str], preamble: str = "") -> dict[str, Any]:
    """Run a Python program once per element of ``inputs``, its standard input."""
    return {"kind": "stdio", "tests": stdin_tests(inputs)} | _python(source, preamble)


def stdin_tests(inputs: Sequence[str]) -> list[dict[str, Any]]:
    """One test per standard input."""
    return [{"stdin": text.encode("utf-8", "surrogateescape")} for text in inputs]


def common_payload() -> dict[str, Any]:
    """The settings that every program has, whatever its language."""
    return {"answer_bytes": ANSWER_BYTES, "keep_going": False, "preload": [], "environment": ENVIRONMENT}


def _python(source: str, preamble: str) -> dict[str, Any]:
    preload = preloadable_imports(f"{preamble}\n{source}")
    return common_payload() | {"source": source, "preamble": preamble, "preload": preload}


def preloadable_imports(source: str) -> list[str]:
    """Standard modules that ``source`` seems to import and that are worth importing once for all of its tests."""
    names = {name.strip() for match in IMPORT.finditer(source) for name in match[1].split(",")}
    return sorted(names.intersection(PRELOADABLE.split()))
