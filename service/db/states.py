"""From rows to what the API answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sandbox.verdict import Status as VerdictStatus
from service.db.models import IterationRow, ProgramRow, RunRow, SearchRow
from service.schemas import (
    ArmSummary,
    IterationState,
    ProgramState,
    RejectedAnswer,
    RunState,
    RunStatus,
    SearchDetail,
    SearchSummary,
    TaskSummary,
)

ArmTotals = Mapping[int, Mapping[str, Any]]
"""Per arm position: runs, finished, solved, best, evaluations, tokens, iterations (finished or not needed)."""


def run_state(row: RunRow, search: SearchRow) -> RunState:
    """One run, with the names that its search gives to arm and task."""
    return RunState(
        id=str(row.id),
        arm=search.arm_summaries[row.arm]["name"],
        task=search.task_summaries[row.task]["name"],
        seed=row.seed,
        status=RunStatus(row.status),
        iteration=row.iteration,
        best=row.best,
        solved_at=row.solved_at,
        evaluations=row.evaluations,
        calls=row.calls,
        lost_calls=row.lost_calls,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        tokens=row.prompt_tokens + row.completion_tokens,
        cost=row.cost,
        error=row.message,
        ended=row.ended,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )


def search_summary(row: SearchRow, totals: ArmTotals) -> SearchSummary:
    """One search and its arms' totals."""
    return SearchSummary(**_summary_fields(row, totals))


def search_detail(row: SearchRow, totals: ArmTotals, runs: Sequence[RunRow]) -> SearchDetail:
    """One search with everything but its programs."""
    return SearchDetail(
        **_summary_fields(row, totals),
        tasks=[TaskSummary(**task) for task in row.task_summaries],
        seeds=row.seeds,
        search=row.config,
        runs=[run_state(run, row) for run in runs],
        last_event=row.events,
    )


def program_state(row: ProgramRow, run: RunRow, search: SearchRow) -> ProgramState:
    """One program, and which run it is of."""
    return ProgramState(
        id=str(row.id),
        run=str(row.run_id),
        arm=search.arm_summaries[run.arm]["name"],
        task=search.task_summaries[run.task]["name"],
        seed=run.seed,
        number=row.number,
        iteration=row.iteration,
        index=row.index,
        island=row.island,
        parents=row.parents,
        operator=row.operator,
        source=row.source,
        digest=row.digest,
        scalar=row.scalar,
        solved=row.solved,
        components=row.components,
        reward=row.reward,
        statuses=[VerdictStatus(status) for status in row.statuses],
        messages=row.messages,
        metrics=row.metrics,
        artifacts=row.artifacts,
        created_at=row.created_at,
    )


def iteration_state(row: IterationRow, *, replies: bool) -> IterationState:
    """One finished iteration. replies: whether with the model's texts, which must have been loaded then."""
    assert row.finished_at is not None  # only finished ones are read
    return IterationState(
        run=str(row.run_id),
        iteration=row.iteration,
        island=row.island or 0,
        parents=row.parents or [],
        evaluations=row.evaluations,
        lost_calls=row.lost_calls,
        tokens=row.tokens,
        rejected=[RejectedAnswer(index=i, reason=why, detail=detail) for i, why, detail in row.rejected or ()],
        error=row.error,
        best=row.best_scalar or 0.0,
        solved=bool(row.solved),
        reply=row.reply["texts"] if replies and row.reply is not None else None,
        finished_at=row.finished_at,
    )


def _summary_fields(row: SearchRow, totals: ArmTotals) -> dict[str, Any]:
    runs = sum(arm["runs"] for arm in totals.values())
    iterations = sum(arm["iterations"] for arm in totals.values())
    return {
        "id": str(row.id),
        "name": row.name,
        "status": RunStatus(row.status),
        "created_at": row.created_at,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "iterations": row.iterations,
        "progress": iterations / (runs * row.iterations) if runs else 0.0,
        "arms": [
            ArmSummary(**summary, **{key: value for key, value in totals[i].items() if key != "iterations"})
            for i, summary in enumerate(row.arm_summaries)
        ],
    }
