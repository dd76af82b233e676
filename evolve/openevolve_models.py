"""The models that an OpenEvolve configuration names, as clients.

Only asked for explicitly (``run(task, model=None)``): a task is data, maybe somebody else's, and this sends the keys of
the environment variables that it names to the servers that it names. Only variables whose name ends in ``_API_KEY`` can
be named, and no key is stored or shown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from pydantic import SecretStr

from evolve.config import ModelConfig
from evolve.ensemble import Ensemble
from evolve.models import OpenAIModel, RetryPolicy
from evolve.openevolve import REFERENCE, LLMSettings, ModelEntry
from evolve.openevolve_task import OpenEvolveTask

DEFAULT_TIMEOUT_S = 300.0
_KEY_SUFFIX = "_API_KEY"


def configured_models(
    task: OpenEvolveTask, environment: Mapping[str, str] = os.environ
) -> tuple[Ensemble, tuple[ModelConfig, ...]]:
    """Clients for the models of ``task.config.llm``, and their names and weights for the search. Close the clients.

    environment: where keys are looked up. Raises ``ValueError`` for what is missing.
    """
    llm = task.config.llm
    entries = [entry for entry in llm.models if entry.weight > 0]
    if not entries:
        raise ValueError("config.llm.models names no model with a weight: add one, or give the search a model")
    clients = {entry.name: _client(entry, llm, environment) for entry in entries}
    return Ensemble(clients), tuple(ModelConfig(name=entry.name, weight=entry.weight) for entry in entries)


def _client(entry: ModelEntry, llm: LLMSettings, environment: Mapping[str, str]) -> OpenAIModel:
    base = entry.api_base or llm.api_base
    if base is None:
        raise ValueError(f"model {entry.name} has no api_base: add llm.api_base, the server's URL with its /v1")
    usual = RetryPolicy()
    retry = RetryPolicy(
        attempts=usual.attempts if llm.retries is None else llm.retries + 1,
        base_s=usual.base_s if llm.retry_delay is None else llm.retry_delay,
    )
    key = _key(entry.api_key or llm.api_key, environment)
    return OpenAIModel(base, entry.name, key, retry=retry, timeout_s=llm.timeout or DEFAULT_TIMEOUT_S)


def _key(reference: str | None, environment: Mapping[str, str]) -> SecretStr | None:
    found = REFERENCE.match(reference or "")
    if found is None:
        return None
    name = found[1]
    if not name.endswith(_KEY_SUFFIX):
        raise ValueError(f"api_key names the variable {name}: only one whose name ends in {_KEY_SUFFIX} is read")
    if not environment.get(name):
        raise ValueError(f"api_key names the variable {name}, which is not set: export it, then search again")
    return SecretStr(environment[name])
