"""Whether the process lives, and whether searches can run."""

from __future__ import annotations

from collections.abc import Awaitable
from importlib.metadata import PackageNotFoundError, version

from fastapi import APIRouter, Response
from redis.exceptions import RedisError
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from sandbox.errors import SandboxError
from service.api.dependencies import ServicesDep
from service.schemas import Check, Health, Readiness
from service.services import Services

router = APIRouter(tags=["health"])


def product_version() -> str:
    """The installed version; ``0`` when run from a checkout that is not installed."""
    try:
        return version("vpo-search")
    except PackageNotFoundError:
        return "0"


@router.get("/healthz", operation_id="health")
async def health() -> Health:
    """The process is alive."""
    return Health(version=product_version())


@router.get("/readyz", operation_id="readiness", responses={503: {"model": Readiness}})
async def readiness(services: ServicesDep, response: Response) -> Readiness:
    """Whether database, Redis and sandbox work; 503 if not, with what to do."""
    checks = {
        "database": await _check(_database(services)),
        "redis": await _check(services.hub.ping()),
        "sandbox": await _check(services.sandbox.check()),
    }
    ready = all(check.ok for check in checks.values())
    response.status_code = 200 if ready else 503
    return Readiness(ready=ready, tier=services.sandbox.tier, checks=checks)


async def _database(services: Services) -> None:
    async with services.sessions() as session:
        await session.execute(text("SELECT 1 FROM searches LIMIT 1"))


async def _check(attempt: Awaitable[None]) -> Check:
    try:
        await attempt
    except SandboxError as error:
        return Check(ok=False, detail=str(error))
    except (SQLAlchemyError, RedisError, OSError) as error:  # their text may contain a connection string
        return Check(ok=False, detail=f"does not answer ({type(error).__name__}): see the service's log and settings")
    return Check(ok=True)
