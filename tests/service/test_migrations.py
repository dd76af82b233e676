"""The schema: models and migrations agree, both ways work, and procrastinate's is the one that is installed."""

from __future__ import annotations

import asyncio
import sys
from importlib.metadata import version
from pathlib import Path

import procrastinate.schema
import psycopg
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

import migrations
from migrations.filters import include_object
from service.db.migrate import migrate, undo
from service.db.models import Base
from service.settings import conninfo

PINNED = Path(migrations.__file__).parent / "procrastinate_3_10.sql"


async def test_down_leaves_nothing_and_up_works_again(database_url: str) -> None:
    def left() -> set[str]:
        query = """
            SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace UNION
            SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace UNION
            SELECT typname FROM pg_type WHERE typnamespace = 'public'::regnamespace
        """
        with psycopg.connect(conninfo(database_url)) as connection:
            return {row[0] for row in connection.execute(query)}

    before = left()
    await undo(database_url)
    assert {name for name in left() if "alembic" not in name} == set()
    await migrate(database_url)
    assert left() == before


async def test_runs_of_an_older_service_are_kept_up_and_down(database_url: str) -> None:
    await undo(database_url, "0002")
    search = """
        INSERT INTO searches (name, iterations, seeds, tasks, task_summaries, arms, arm_summaries, config)
        VALUES ('old', 5, '{0}', '[]', '[]', '[]', '[]', '{}') RETURNING id
    """
    run = "INSERT INTO runs (search_id, arm, task, seed, status, best) VALUES (%s, 0, 0, 0, 'done', 0.5)"
    with psycopg.connect(conninfo(database_url)) as connection:
        found = connection.execute(search).fetchone()
        assert found is not None
        connection.execute(run, found)
    await migrate(database_url)
    with psycopg.connect(conninfo(database_url)) as connection:
        assert connection.execute("SELECT best, ended, cost FROM runs").fetchall() == [(0.5, None, 0.0)]
        connection.execute("UPDATE runs SET ended = 'cost', cost = 1.5")
    await undo(database_url, "0002")
    with psycopg.connect(conninfo(database_url)) as connection:
        assert connection.execute("SELECT status, best FROM runs").fetchall() == [("done", 0.5)]


async def test_starting_twice_at_once_migrates_once(database_url: str) -> None:
    await undo(database_url)
    code = "import asyncio, sys; from service.db.migrate import migrate; asyncio.run(migrate(sys.argv[1]))"
    started = [await asyncio.create_subprocess_exec(sys.executable, "-c", code, database_url) for _ in range(2)]
    assert [await process.wait() for process in started] == [0, 0]


def test_the_migrations_make_what_the_models_say(database_url: str) -> None:
    engine = create_engine(database_url)
    with engine.connect() as connection:
        options = {"include_object": include_object, "compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_the_pinned_queue_schema_is_that_of_the_installed_procrastinate() -> None:
    assert version("procrastinate").startswith("3.10.")
    assert PINNED.read_text(encoding="utf-8") == procrastinate.schema.SchemaManager.get_schema()
