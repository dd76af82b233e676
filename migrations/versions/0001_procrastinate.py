"""The job queue: procrastinate's schema as of 3.10."""

from __future__ import annotations

from pathlib import Path

from alembic import op
from sqlalchemy.exc import DBAPIError

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SCHEMA = Path(__file__).parents[1] / "procrastinate_3_10.sql"

_DROP = """
DROP TABLE procrastinate_events, procrastinate_periodic_defers, procrastinate_jobs, procrastinate_workers CASCADE;
DO $$
DECLARE
    item record;
BEGIN
    FOR item IN SELECT oid::regprocedure AS name FROM pg_proc
        WHERE proname LIKE 'procrastinate\\_%' AND pronamespace = current_schema()::regnamespace
    LOOP
        EXECUTE 'DROP FUNCTION ' || item.name || ' CASCADE';
    END LOOP;
END;
$$;
DROP TYPE procrastinate_job_to_defer_v1, procrastinate_job_status, procrastinate_job_event_type;
"""


def upgrade() -> None:
    """Create procrastinate's tables, types and functions."""
    _execute(SCHEMA.read_text(encoding="utf-8"))


def downgrade() -> None:
    """Remove them."""
    _execute(_DROP)


def _execute(script: str) -> None:
    """Run several statements at once, which only the driver itself does, and only without parameters."""
    driver = op.get_bind().connection.driver_connection
    if driver is None:
        raise DBAPIError("the connection is closed", None, RuntimeError("closed"))
    driver.execute(script)
