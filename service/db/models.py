"""The tables. ``programs`` is append-only and the truth about a run; what ``runs`` counts can be computed from it.

Model replies are kept as ``json`` rather than ``jsonb``: models write NUL characters and lone surrogates, which JSON
text can escape and ``jsonb`` cannot hold.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    JSON,
    REAL,
    BigInteger,
    CheckConstraint,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    Sequence,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """All tables of the service. Procrastinate's (``procrastinate_*``) are not among them."""

    metadata = MetaData(naming_convention=_NAMES)
    type_annotation_map = {  # noqa: RUF012 (SQLAlchemy's own way)
        datetime: DateTime(timezone=True),
        str: Text,
        float: Double,
        int: Integer,
        list[str]: ARRAY(Text),
        list[int]: ARRAY(Integer),
    }


LEASES = Sequence("leases", metadata=Base.metadata)
"""Numbers for workers and for their claims on runs."""

_LISTED = text("operator <> 'migrant'")
_STATUSES = "status IN ('queued', 'running', 'waiting', 'done', 'failed', 'cancelled')"


class SearchRow(Base):
    """A search. tasks, arms, config: documents of its spec. events: id of its last event."""

    __tablename__ = "searches"
    __table_args__ = (CheckConstraint(_STATUSES, name="status"),)

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    name: Mapped[str]
    status: Mapped[str] = mapped_column(server_default="queued")
    iterations: Mapped[int]
    seeds: Mapped[list[int]] = mapped_column(ARRAY(BigInteger))
    tasks: Mapped[list[dict[str, Any]]] = mapped_column(JSONB, deferred=True)
    task_summaries: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    arms: Mapped[list[dict[str, Any]]] = mapped_column(JSONB, deferred=True)
    arm_summaries: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    config: Mapped[dict[str, Any]] = mapped_column(JSONB)
    events: Mapped[int] = mapped_column(BigInteger, server_default="0")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class RunRow(Base):
    """A run: (search, arm, task, seed), arm and task by position in the search.

    message: why it waits or failed. ended: why it needs no more iterations. best: best task scalar so far. cost: of its
    finished iterations, in the currency of the models' prices. failures: interruptions since the last progress.
    worker, lease: the worker that works on it, and that claim's number; writes under an older lease are refused.
    """

    __tablename__ = "runs"
    __table_args__ = (
        UniqueConstraint("search_id", "arm", "task", "seed"),
        CheckConstraint(_STATUSES, name="status"),
        Index("ix_runs_job_id", "job_id"),
        Index("ix_runs_unfinished", "id", postgresql_where=text("status IN ('queued', 'running', 'waiting')")),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    search_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("searches.id", ondelete="CASCADE"))
    arm: Mapped[int]
    task: Mapped[int]
    seed: Mapped[int] = mapped_column(BigInteger)
    status: Mapped[str] = mapped_column(server_default="queued")
    message: Mapped[str | None]
    ended: Mapped[str | None]
    job_id: Mapped[int | None] = mapped_column(BigInteger)
    worker: Mapped[int | None]
    lease: Mapped[int | None] = mapped_column(BigInteger)
    failures: Mapped[int] = mapped_column(server_default="0")
    iteration: Mapped[int] = mapped_column(server_default="0")
    best: Mapped[float | None]
    solved_at: Mapped[int | None]
    evaluations: Mapped[int] = mapped_column(BigInteger, server_default="0")
    calls: Mapped[int] = mapped_column(BigInteger, server_default="0")
    lost_calls: Mapped[int] = mapped_column(BigInteger, server_default="0")
    prompt_tokens: Mapped[int] = mapped_column(BigInteger, server_default="0")
    completion_tokens: Mapped[int] = mapped_column(BigInteger, server_default="0")
    cost: Mapped[float] = mapped_column(server_default="0")
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class IterationRow(Base):
    """An iteration, from its first request on. ``finished_at`` is null until its result is in.

    lost_calls: requests sent in vain, while there is no reply; then of the reply's usage. tokens: of the reply.
    """

    __tablename__ = "iterations"

    run_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    iteration: Mapped[int] = mapped_column(primary_key=True)
    island: Mapped[int | None]
    parents: Mapped[list[int] | None]
    reply: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True), deferred=True)
    lost_calls: Mapped[int] = mapped_column(server_default="0")
    tokens: Mapped[int] = mapped_column(BigInteger, server_default="0")
    rejected: Mapped[list[Any] | None] = mapped_column(JSONB(none_as_null=True))
    evaluations: Mapped[int] = mapped_column(server_default="0")
    best_scalar: Mapped[float | None]
    solved: Mapped[bool | None]
    error: Mapped[str | None]
    info: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    finished_at: Mapped[datetime | None]


class ProgramRow(Base):
    """One program; the lists have one value per reward component. Rows are only ever inserted."""

    __tablename__ = "programs"
    __table_args__ = (
        UniqueConstraint("run_id", "number"),
        Index(
            "ix_programs_best", "search_id", text("scalar DESC"), "id", postgresql_where=text("operator <> 'migrant'")
        ),
        Index("ix_programs_newest", "search_id", text("id DESC"), postgresql_where=text("operator <> 'migrant'")),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    run_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("runs.id", ondelete="CASCADE"))
    search_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("searches.id", ondelete="CASCADE"))
    number: Mapped[int]
    iteration: Mapped[int]
    index: Mapped[int]
    island: Mapped[int]
    parents: Mapped[list[int]]
    operator: Mapped[str]
    source: Mapped[str]
    digest: Mapped[str]
    scalar: Mapped[float]
    solved: Mapped[bool]
    components: Mapped[list[str]]
    reward: Mapped[list[float]] = mapped_column(ARRAY(REAL))
    statuses: Mapped[list[str]]
    messages: Mapped[list[str]]
    metrics: Mapped[dict[str, float]] = mapped_column(JSONB)
    artifacts: Mapped[dict[str, str]] = mapped_column(JSONB)
    cpu_s: Mapped[float] = mapped_column(REAL)
    peak_mb: Mapped[float] = mapped_column(REAL)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class EventRow(Base):
    """What happened to a search, numbered 1, 2, ... without gaps in the order of the commits."""

    __tablename__ = "events"

    search_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("searches.id", ondelete="CASCADE"), primary_key=True)
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    type: Mapped[str]
    data: Mapped[dict[str, Any]] = mapped_column(JSONB)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
