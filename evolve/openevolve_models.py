"""The models that an OpenEvolve configuration names.

Only asked for explicitly (``run(task, model=None)``, ``vpo search --model task``): a task is data, maybe somebody
else's, and this sends the keys of the environment variables that it names to the servers that it names. Only variables
whose name ends in ``_API_KEY`` can be named, and no key is stored or shown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from evolve.config import ModelConfig
from evolve.endpoints import KEY_SUFFIX, Endpoint, open_client
from evolve.ensemble import Ensemble
from evolve.openevolve import REFERENCE, LLMSettings, ModelEntry
from evolve.openevolve_task import OpenEvolveTask
from evolve.strict import explain


def configured_endpoints(task: OpenEvolveTask) -> tuple[Endpoint, ...]:
    """The models of ``task.config.llm`` that have a weight. Raises ``ValueError`` for what is missing or not allowed.

    A model that is named twice, with other parameters say, is told apart by a number: ``name``, ``name-2``.
    """
    llm = task.config.llm
    entries = [entry for entry in llm.models if entry.weight > 0]
    if not entries:
        raise ValueError("config.llm.models names no model with a weight: add one, or give the search a model")
    found: list[Endpoint] = []
    for entry in entries:
        found.append(_endpoint(entry, llm, [endpoint.name for endpoint in found]))
    return tuple(found)


def configured_models(
    task: OpenEvolveTask, environment: Mapping[str, str] = os.environ
) -> tuple[Ensemble, tuple[ModelConfig, ...]]:
    """Clients for the models of ``task.config.llm``, and their names and weights for the search. Close the clients.

    environment: where keys are looked up. Raises ``ValueError`` for what is missing.
    """
    endpoints = configured_endpoints(task)
    clients = {endpoint.name: open_client(endpoint, environment) for endpoint in endpoints}
    return Ensemble(clients), tuple(endpoint.as_model for endpoint in endpoints)


def _endpoint(entry: ModelEntry, llm: LLMSettings, taken: Sequence[str]) -> Endpoint:
    base = entry.api_base or llm.api_base
    if base is None:
        raise ValueError(f"model {entry.name} has no api_base: add llm.api_base, the server's URL with its /v1")
    try:
        return Endpoint(
            name=_unused(entry.name, taken),
            model=entry.name,
            endpoint=base,
            weight=entry.weight,
            temperature=entry.temperature,
            top_p=entry.top_p,
            max_tokens=entry.max_tokens,
            api_key_env=_variable(entry.api_key or llm.api_key),
            timeout_s=llm.timeout if entry.timeout is None else entry.timeout,
            retries=llm.retries if entry.retries is None else entry.retries,
            retry_delay_s=llm.retry_delay if entry.retry_delay is None else entry.retry_delay,
        )
    except ValidationError as error:
        raise ValueError(f"model {entry.name}: {explain(error)}") from None


def _unused(name: str, taken: Sequence[str]) -> str:
    numbered = (name if i == 1 else f"{name}-{i}" for i in range(1, len(taken) + 2))
    return next(candidate for candidate in numbered if candidate not in taken)


def _variable(reference: str | None) -> str | None:
    found = REFERENCE.match(reference or "")
    if found is None:
        return None
    if not found[1].endswith(KEY_SUFFIX):
        raise ValueError(f"api_key names the variable {found[1]}: only one whose name ends in {KEY_SUFFIX} is read")
    return found[1]
