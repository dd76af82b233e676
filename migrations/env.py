"""Alembic's environment. Run through :mod:`service.db.migrate`, which names the database."""

from __future__ import annotations

from alembic import context
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from migrations.filters import include_object
from service.db.models import Base

_LOCK = 0x76706F  # "vpo"


def run() -> None:
    """Migrate in one transaction, one process at a time."""
    engine = create_engine(context.config.attributes["database_url"], poolclass=NullPool)
    with engine.connect() as connection:
        context.configure(connection=connection, target_metadata=Base.metadata, include_object=include_object)
        with context.begin_transaction():
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            context.run_migrations()
    engine.dispose()


run()
