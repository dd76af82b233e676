"""Who may import whom."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = {"evolve", "sandbox", "service", "trainer", "migrations", "benchmarks", "tests"}
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
    """Top-level names that a file imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.split(".")[0])
    return names


def files(package: str) -> list[Path]:
    return [path for path in (ROOT / package).rglob("*.py") if "node_modules" not in path.parts]


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_packages_import_only_what_they_may(package: str) -> None:
    assert files(package)
    for path in files(package):
        names = imported(path)
        assert names & OURS <= ALLOWED[package] | {package}, path
        assert not names & FORBIDDEN_OUTSIDE[package], path
