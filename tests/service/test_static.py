"""The committed build of the dashboard is what its source builds, and is small and self-contained. No Node needed."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from sandbox.tiers import Tier
from sandbox.verdict import Status as VerdictStatus
from service import schemas

SERVICE = Path(__file__).parents[2] / "service"
WEB = SERVICE / "web"
STATIC = SERVICE / "static"
STAMP = "build.json"
# What the build reads: the list of service/web/scripts/build-stamp.ts.
SOURCES = (
    "index.html",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "vite.config.ts",
    "public",
    "scripts",
    "src",
)
# Types of service/web/src/api/types.ts, and the answers that they describe a part of.
TYPES = {
    "Run": schemas.RunState,
    "ArmSummary": schemas.ArmSummary,
    "SearchSummary": schemas.SearchSummary,
    "SearchPage": schemas.SearchPage,
    "TaskSummary": schemas.TaskSummary,
    "Search": schemas.SearchDetail,
    "ArmCurve": schemas.ArmCurve,
    "Curve": schemas.Curve,
    "Program": schemas.ProgramState,
    "ProgramPage": schemas.ProgramPage,
    "Check": schemas.Check,
    "Readiness": schemas.Readiness,
}
REBUILD = "rebuild it with `make web` and commit service/static"


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def files_under(folder: Path) -> list[Path]:
    return sorted((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.as_posix().encode())


def source_digest() -> str:
    files = [path for name in SOURCES for path in (files_under(WEB / name) if (WEB / name).is_dir() else [WEB / name])]
    lines = [f"{sha256(path)}  {path.relative_to(WEB).as_posix()}\n" for path in files]
    lines.sort(key=lambda line: line.partition("  ")[2].strip().encode())
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@pytest.fixture(scope="module")
def stamp() -> dict[str, Any]:
    return json.loads((STATIC / STAMP).read_text(encoding="utf-8"))


def built(suffix: str) -> list[Path]:
    found = [path for path in files_under(STATIC) if path.suffix == suffix]
    assert found, f"service/static has no {suffix} file: {REBUILD}"
    return found


def test_build_is_of_this_source(stamp: dict[str, Any]) -> None:
    assert stamp["sources"] == source_digest(), f"service/web has changed since it was built: {REBUILD}"


def test_built_files_are_as_they_were_made(stamp: dict[str, Any]) -> None:
    found = {path.relative_to(STATIC).as_posix(): sha256(path) for path in files_under(STATIC) if path.name != STAMP}
    assert found == stamp["files"], f"service/static was changed by hand: {REBUILD}"


def test_page_names_only_files_that_exist() -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    names = re.findall(r'(?:src|href)="\./([^"]+)"', page)
    assert any(name.endswith(".js") for name in names)
    assert all((STATIC / name).is_file() for name in names)


def test_script_is_small() -> None:
    assert sum(len(gzip.compress(path.read_bytes())) for path in built(".js")) < 60_000


def test_page_asks_no_other_host() -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in page
    for path in [STATIC / "index.html", *built(".css")]:
        assert not re.search(r"(?:https?:)?//[\w.-]+\.\w", path.read_text(encoding="utf-8")), path.name


def test_lock_file_names_no_registry() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert packages
    assert not [name for name, entry in packages.items() if "resolved" in entry or "integrity" not in entry]


@pytest.mark.parametrize(("name", "model"), TYPES.items(), ids=list(TYPES))
def test_types_name_fields_that_the_service_sends(name: str, model: type[BaseModel]) -> None:
    source = (WEB / "src/api/types.ts").read_text(encoding="utf-8")
    body = re.search(rf"interface {name}\b[^{{]*\{{(.*?)^\}}", source, re.DOTALL | re.MULTILINE)
    assert body, f"src/api/types.ts has no interface {name}"
    fields = set(re.findall(r"^  (\w+):", body[1], re.MULTILINE))
    assert fields
    assert fields <= set(model.model_fields)


@pytest.mark.parametrize(
    ("name", "values"), [("Status", schemas.RunStatus), ("VerdictStatus", VerdictStatus), ("Tier", Tier)]
)
def test_types_name_every_status(name: str, values: Iterable[str]) -> None:
    source = (WEB / "src/api/types.ts").read_text(encoding="utf-8")
    line = re.search(rf"type {name} = ([^;]+);", source)
    assert line, f"src/api/types.ts has no type {name}"
    assert set(re.findall(r'"(\w+)"', line[1])) == set(values)


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
async def test_pages_of_the_api_ask_no_other_host(api: httpx.AsyncClient, path: str) -> None:
    page = (await api.get(path)).text
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", page)
    assets = re.findall(r"""(?:src|href)=["'](/[^"']+)["']""", page)
    assert any(asset.endswith(".js") for asset in assets)
    for asset in assets:
        assert (await api.get(asset)).status_code == 200
