"""Settings, read from environment variables. None of them is needed: the defaults run everything on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import platformdirs
from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from sandbox.tiers import Tier

_DRIVER = "postgresql+psycopg://"


def normalise_database_url(url: object) -> object:
    """The URL for SQLAlchemy on psycopg 3: ``postgres://`` and ``postgresql://`` get the driver's name."""
    if not isinstance(url, str) or not url:
        return url or None
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in ("postgres", "postgresql", "postgresql+psycopg"):
        raise ValueError("DATABASE_URL must be like postgresql://user:password@host:5432/database")
    return _DRIVER + rest


def _check_redis_url(url: object) -> object:
    if isinstance(url, str) and url and not url.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("REDIS_URL must be like redis://host:6379/0")
    return url or None


def _check_tier(tier: Tier) -> Tier:
    if tier is Tier.NONE:
        raise ValueError("VPO_MIN_TIER must be confined, jail or full: programs are never run without isolation")
    return tier


def conninfo(database_url: str) -> str:
    """The same database for libpq, which does not know driver names."""
    return "postgresql://" + database_url.removeprefix(_DRIVER)


def default_data_dir() -> Path:
    """Where the embedded servers keep their data.

    As root the database runs as another user, who cannot enter root's home; so root gets a system folder.
    """
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return Path("/var/lib/vpo-search")
    return Path(platformdirs.user_data_dir("vpo-search", appauthor=False))


class Settings(BaseSettings):
    """All settings of the service.

    database_url, redis_url: real servers; unset starts embedded ones in ``data_dir``.
    concurrency: runs that a worker works on at once. sandbox_concurrency: jails alive at once.
    min_tier: the weakest isolation that programs may run in; lower than ``jail`` only on purpose.
    folders: folders of this machine that the evaluators of tasks may ask to see, by name (a JSON object).
    worker: whether ``vpo serve`` also works on jobs itself.
    model_timeout_s: for one whole answer of a model.
    """

    model_config = SettingsConfigDict(env_prefix="VPO_", frozen=True, hide_input_in_errors=True)

    database_url: Annotated[str | None, BeforeValidator(normalise_database_url)] = Field(
        default=None, validation_alias="DATABASE_URL", repr=False
    )
    redis_url: Annotated[str | None, BeforeValidator(_check_redis_url)] = Field(
        default=None, validation_alias="REDIS_URL", repr=False
    )
    data_dir: Path = Field(default_factory=default_data_dir)
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    worker: bool = True
    concurrency: Annotated[int, Field(ge=1, le=1024)] = 16
    sandbox_concurrency: Annotated[int, Field(ge=1, le=256)] = Field(default_factory=lambda: os.cpu_count() or 2)
    min_tier: Annotated[Tier, AfterValidator(_check_tier)] = Tier.JAIL
    folders: dict[str, Path] = Field(default_factory=dict)
    model_timeout_s: Annotated[float, Field(gt=0)] = 300.0
    log_level: str = "info"
