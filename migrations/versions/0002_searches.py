"""Searches, runs, iterations, programs and events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_STATUSES = "status IN ('queued', 'running', 'waiting', 'done', 'failed', 'cancelled')"
_UNFINISHED = sa.text("status IN ('queued', 'running', 'waiting')")
_LISTED = sa.text("operator <> 'migrant'")


def upgrade() -> None:
    """Create the tables."""
    op.execute(sa.schema.CreateSequence(sa.Sequence("leases")))
    op.create_table(
        "searches",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default="queued", nullable=False),
        sa.Column("iterations", sa.Integer(), nullable=False),
        sa.Column("seeds", sa.ARRAY(sa.BigInteger()), nullable=False),
        sa.Column("tasks", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("task_summaries", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("arms", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("arm_summaries", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("config", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("events", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(_STATUSES, name=op.f("ck_searches_status")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_searches")),
    )
    op.create_table(
        "events",
        sa.Column("search_id", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("data", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["search_id"], ["searches.id"], name=op.f("fk_events_search_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("search_id", "id", name=op.f("pk_events")),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("search_id", sa.BigInteger(), nullable=False),
        sa.Column("arm", sa.Integer(), nullable=False),
        sa.Column("task", sa.Integer(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), server_default="queued", nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("job_id", sa.BigInteger(), nullable=True),
        sa.Column("worker", sa.Integer(), nullable=True),
        sa.Column("lease", sa.BigInteger(), nullable=True),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("iteration", sa.Integer(), server_default="0", nullable=False),
        sa.Column("best", sa.Double(), nullable=True),
        sa.Column("solved_at", sa.Integer(), nullable=True),
        sa.Column("evaluations", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("calls", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("lost_calls", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("completion_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(_STATUSES, name=op.f("ck_runs_status")),
        sa.ForeignKeyConstraint(["search_id"], ["searches.id"], name=op.f("fk_runs_search_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("search_id", "arm", "task", "seed", name=op.f("uq_runs_search_id_arm_task_seed")),
    )
    op.create_index("ix_runs_job_id", "runs", ["job_id"], unique=False)
    op.create_index(
        "ix_runs_unfinished",
        "runs",
        ["id"],
        unique=False,
        postgresql_where=_UNFINISHED,
    )
    op.create_table(
        "iterations",
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("iteration", sa.Integer(), nullable=False),
        sa.Column("island", sa.Integer(), nullable=True),
        sa.Column("parents", sa.ARRAY(sa.Integer()), nullable=True),
        sa.Column("reply", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("lost_calls", sa.Integer(), server_default="0", nullable=False),
        sa.Column("tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("rejected", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("evaluations", sa.Integer(), server_default="0", nullable=False),
        sa.Column("best_scalar", sa.Double(), nullable=True),
        sa.Column("solved", sa.Boolean(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("info", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_iterations_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "iteration", name=op.f("pk_iterations")),
    )
    op.create_table(
        "programs",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("search_id", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("iteration", sa.Integer(), nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("island", sa.Integer(), nullable=False),
        sa.Column("parents", sa.ARRAY(sa.Integer()), nullable=False),
        sa.Column("operator", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("scalar", sa.Double(), nullable=False),
        sa.Column("solved", sa.Boolean(), nullable=False),
        sa.Column("components", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("reward", sa.ARRAY(sa.REAL()), nullable=False),
        sa.Column("statuses", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("messages", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("metrics", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("artifacts", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("cpu_s", sa.REAL(), nullable=False),
        sa.Column("peak_mb", sa.REAL(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_programs_run_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["search_id"], ["searches.id"], name=op.f("fk_programs_search_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_programs")),
        sa.UniqueConstraint("run_id", "number", name=op.f("uq_programs_run_id_number")),
    )
    op.create_index(
        "ix_programs_best",
        "programs",
        ["search_id", sa.literal_column("scalar DESC"), "id"],
        unique=False,
        postgresql_where=_LISTED,
    )
    op.create_index(
        "ix_programs_newest",
        "programs",
        ["search_id", sa.literal_column("id DESC")],
        unique=False,
        postgresql_where=_LISTED,
    )


def downgrade() -> None:
    """Drop them, with everything in them."""
    op.drop_index("ix_programs_newest", table_name="programs", postgresql_where=_LISTED)
    op.drop_index("ix_programs_best", table_name="programs", postgresql_where=_LISTED)
    op.drop_table("programs")
    op.drop_table("iterations")
    op.drop_index("ix_runs_unfinished", table_name="runs", postgresql_where=_UNFINISHED)
    op.drop_index("ix_runs_job_id", table_name="runs")
    op.drop_table("runs")
    op.drop_table("events")
    op.drop_table("searches")
    op.execute(sa.schema.DropSequence(sa.Sequence("leases")))
