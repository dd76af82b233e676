"""Bringing a database to the current schema with Alembic, whose scripts are in the ``migrations`` package."""

from __future__ import annotations

import asyncio
from pathlib import Path

import alembic.command
from alembic.config import Config

import migrations


def alembic_config(database_url: str) -> Config:
    """Alembic's configuration for a database."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.attributes["database_url"] = database_url  # not an option: those interpolate % and are shown in errors
    return config


async def migrate(database_url: str, revision: str = "head") -> None:
    """Upgrade to ``revision``. Safe where several processes start at once: one migrates, the others wait."""
    await asyncio.to_thread(alembic.command.upgrade, alembic_config(database_url), revision)


async def undo(database_url: str, revision: str = "base") -> None:
    """Downgrade to ``revision``; ``base`` removes everything, data included."""
    await asyncio.to_thread(alembic.command.downgrade, alembic_config(database_url), revision)
