"""Working on one run: from its claim to its end, or to the reason why it has to wait."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import TypeAdapter
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from evolve.cascade import search_evaluator
from evolve.config import SearchConfig
from evolve.driver import EvaluationFailed, run_search
from evolve.endpoints import Endpoint, MissingKey, open_client
from evolve.ensemble import Ensemble
from evolve.evaluator import Evaluator
from evolve.models import ModelClient, ModelRequestError, ModelUnavailable, OpenAIModel
from evolve.program import Evaluation
from evolve.prompts import PromptError
from evolve.search import Search
from evolve.task import Task
from sandbox.errors import SandboxUnavailable
from service.db.runs import Claim, LeaseLost, claim_run, release_run, set_status
from service.db.store import PostgresStore
from service.jobs import RunDeferred
from service.schemas import RunStatus
from service.services import Services
from service.spec import Arm

MAX_JUDGING_FAILURES = 5
_FIRST_WAIT_S = 2
_LONGEST_WAIT_S = 30
_MAX_MESSAGE = 2_000
_TASKS: TypeAdapter[Any] = TypeAdapter(Task)

logger = logging.getLogger(__name__)


class Models:
    """Model clients, one per endpoint, model and key, shared by all runs of a process."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._clients: dict[tuple[Any, ...], OpenAIModel] = {}

    def get(self, arm: Arm) -> ModelClient:
        """The client for an arm, or all of its models as one. Raises :class:`evolve.endpoints.MissingKey`."""
        clients = {endpoint.name: self._client(arm, endpoint) for endpoint in arm.endpoints}
        return Ensemble(clients) if arm.models else next(iter(clients.values()))

    def _client(self, arm: Arm, endpoint: Endpoint) -> OpenAIModel:
        key = endpoint.connection
        if key not in self._clients:
            try:
                self._clients[key] = open_client(endpoint, timeout_s=self._timeout_s)
            except MissingKey:
                raise MissingKey(
                    f"the worker has no environment variable {endpoint.api_key_env}, which arm {arm.name!r} names as "
                    "its api_key_env: set it and start the search again"
                ) from None
        return self._clients[key]

    async def aclose(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()


class ExactEvaluator:
    """Rounds rewards to the precision they are stored with, so that a run rebuilt from its rows is the same run."""

    def __init__(self, inner: Evaluator) -> None:
        self._inner = inner

    async def evaluate(self, source: str) -> Evaluation:
        """The inner evaluation with rewards that a ``real`` column holds exactly."""
        evaluation = await self._inner.evaluate(source)
        rounded = np.asarray(evaluation.reward, dtype=np.float32).astype(float)
        return replace(evaluation, reward=tuple(rounded.tolist()))


async def execute(services: Services, models: Models, run_id: int, *, worker: int, stop: asyncio.Event) -> None:
    """Work on a run until it is over.

    stop: ends it early, what is stored staying stored. Raises :class:`RunDeferred` where it is to be taken up again,
    :class:`service.db.runs.RunBusy`, and what the database raises when it does not answer.
    """
    claim, events = await claim_run(services.sessions, run_id, worker)
    await services.hub.publish(events)
    if claim is None:
        return
    try:
        await _attempt(services, models, claim, stop)
    except LeaseLost as lost:
        logger.info("%s", lost)
    except ModelUnavailable as error:
        await _wait(services, claim, str(error))
    except SandboxUnavailable as error:
        await _wait(services, claim, str(error))
    except EvaluationFailed as error:
        if claim.failures + 1 >= MAX_JUDGING_FAILURES:
            await _fail(services, claim, str(error))
        else:
            await _wait(services, claim, str(error))
    except (ModelRequestError, MissingKey, PromptError) as error:
        await _fail(services, claim, str(error))
    except (RunDeferred, OperationalError, InterfaceError, PoolTimeout):
        raise
    except Exception as error:
        logger.exception("run %d failed", claim.run_id)
        await _fail(services, claim, f"unexpected {type(error).__name__}: {error} (the service's log has more)")


async def _attempt(services: Services, models: Models, claim: Claim, stop: asyncio.Event) -> None:
    task, arm = _TASKS.validate_python(claim.task), Arm.model_validate(claim.arm)
    config = arm.config(SearchConfig.model_validate(claim.search.config), task)
    store = PostgresStore(services.sessions, claim, services.hub.publish, models=config.models)
    summary = await run_search(
        Search(task, config, seed=claim.seed, manifest=arm.manifest),
        model=models.get(arm),
        evaluator=ExactEvaluator(search_evaluator(task, config, services.sandbox)),
        store=store,
        iterations=claim.search.iterations,
        stop=stop,
    )
    if summary.ended == "stopped":
        await release_run(services.sessions, claim)
        raise RunDeferred(0, f"run {claim.run_id} stops with its worker")
    await services.hub.publish(await set_status(services.sessions, claim, RunStatus.DONE, ended=summary.ended))


async def _wait(services: Services, claim: Claim, message: str) -> None:
    """Let the run wait for what it needs, a little longer each time in vain."""
    seconds = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** min(claim.failures, 10))
    await _set(services, claim, RunStatus.WAITING, message, failures=claim.failures + 1)
    raise RunDeferred(seconds, f"run {claim.run_id} waits: {message}")


async def _fail(services: Services, claim: Claim, message: str) -> None:
    logger.error("run %d failed: %s", claim.run_id, message)
    await _set(services, claim, RunStatus.FAILED, message)


async def _set(services: Services, claim: Claim, status: RunStatus, message: str, failures: int = 0) -> None:
    message = message.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()[:_MAX_MESSAGE]
    try:
        events = await set_status(services.sessions, claim, status, message=message, failures=failures)
    except LeaseLost as lost:
        logger.info("%s", lost)
    else:
        await services.hub.publish(events)
