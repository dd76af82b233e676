"""Who may import whom."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = {"evolve", "sandbox", "service", "trainer", "migrations", "benchmarks", "examples", "tests"}
ALLOWED = {
    "sandbox": set(),
    "evolve": {"sandbox"},
    "trainer": {"evolve", "sandbox"},
    "service": {"evolve", "sandbox", "migrations"},
}
FORBIDDEN_OUTSIDE = {
    "evolve": {"torch", "transformers", "sqlalchemy", "psycopg", "procrastinate", "redis", "fastapi", "starlette"},
    "sandbox": {"torch", "transformers", "sqlalchemy", "psycopg", "redis", "fastapi", "httpx", "pydantic"},
    "trainer": {"fastapi", "sqlalchemy", "psycopg", "redis"},
    "service": {"torch"},
}


def imported(path: Path) -> set[str]:
    """Top-level names that a file imports, anywhere in it, also by ``import_module("literal")``."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write imports with their full name"
            names.add(str(node.module).split(".")[0])
        elif isinstance(node, ast.Call) and node.args and _name(node.func) in ("import_module", "__import__"):
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                names.add(first.value.split(".")[0])
    return names


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def files(package: str) -> list[Path]:
    return [path for path in (ROOT / package).rglob("*.py") if "node_modules" not in path.parts]


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_packages_import_only_what_they_may(package: str) -> None:
    assert files(package)
    for path in files(package):
        names = imported(path)
        assert names & OURS <= ALLOWED[package] | {package}, path
        assert not names & FORBIDDEN_OUTSIDE[package], path


def test_what_runs_in_the_jail_needs_only_python() -> None:
    inside = files("sandbox/inside")
    assert inside
    for path in inside:
        assert imported(path) <= set(sys.stdlib_module_names) | {"sandbox"}, path


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f():\n    import torch.nn as n", {"torch"}),
        ("from service.db import x", {"service"}),
        ("importlib.import_module('trainer.loop')", {"trainer"}),
    ],
)
def test_imports_are_found_wherever_they_are(tmp_path: Path, source: str, names: set[str]) -> None:
    (tmp_path / "m.py").write_text(source)
    assert imported(tmp_path / "m.py") == names


def test_relative_imports_are_refused(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("from . import x")
    with pytest.raises(AssertionError, match="full name"):
        imported(tmp_path / "m.py")
