"""Endpoints: where models are asked, with which key; and models that are asked in ways of their own."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from evolve.chain import ChainFormat
from evolve.config import ModelConfig, SearchConfig
from evolve.endpoints import Endpoint, MissingKey, open_client
from evolve.manifest import Manifest, PromptFormat
from evolve.request import DEFAULT_MAX_TOKENS, Request
from tests.evolve.world import SEED_SOURCE, judge, new_search, reply_to

URL = "http://127.0.0.1:9/v1"


async def test_a_client_has_the_endpoints_key_and_times() -> None:
    endpoint = Endpoint(name="a-2", model="a", endpoint=f"{URL}/", api_key_env="SOME_API_KEY", retries=0, timeout_s=7)
    async with open_client(endpoint, {"SOME_API_KEY": "k1"}) as client:
        assert (client.base_url, client.model, client._timeout_s, client._retry.attempts) == (URL, "a", 7, 1)
        assert client._headers()["Authorization"] == "Bearer k1"
    assert "k1" not in repr(endpoint) + endpoint.model_dump_json()
    assert endpoint.as_model == ModelConfig(name="a-2")
    with pytest.raises(MissingKey, match="SOME_API_KEY is not set: export it"):
        open_client(endpoint, {})


@pytest.mark.parametrize(("configured", "least", "most"), [(None, 0.25, 0.5), (2.0, 1.0, 2.0), (60.0, 30.0, 60.0)])
async def test_a_client_waits_as_long_as_the_endpoint_says(configured: float | None, least: float, most: float) -> None:
    async with open_client(Endpoint(name="a", endpoint=URL, retry_delay_s=configured), {}) as client:
        assert least <= client._retry.delay(0, None) <= most
        assert client._retry.delay(50, None) <= max(20.0, most)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"endpoint": "ftp://127.0.0.1"}, "must be a URL"),
        ({"endpoint": "http://me:pw@127.0.0.1/v1"}, "use api_key_env"),
        ({"api_key_env": "HOME"}, "ends in _API_KEY"),
        ({"temperatur": 1}, "did you mean 'temperature'"),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Endpoint.model_validate({"name": "a", "endpoint": URL} | changes)


def requests(config: SearchConfig, count: int = 12, manifest: Manifest | None = None) -> list[Request]:
    search = new_search(config, manifest=manifest)
    search.begin(judge(SEED_SOURCE))
    found = []
    for _ in range(count):
        request = search.ask()
        reply = reply_to(request)
        candidates = search.read(request, reply)
        search.tell(request, reply, candidates, [judge(child.source) for child in candidates.children])
        found.append(request)
    return found


def test_each_model_is_asked_with_its_own_parameters() -> None:
    models = (
        ModelConfig(name="cold", temperature=0.0, top_p=0.5, max_tokens=64),
        ModelConfig(name="plain"),
    )
    config = SearchConfig(models=models, temperature=0.8, top_p=0.9, stop_when_solved=False)
    asked = {(r.model, r.temperature, r.top_p, r.max_tokens) for r in requests(config)}
    assert asked == {("cold", 0.0, 0.5, 64), ("plain", 0.8, 0.9, DEFAULT_MAX_TOKENS)}


def test_the_only_model_needs_not_be_chosen() -> None:
    config = SearchConfig(models=(ModelConfig(name="m", temperature=0.1),))
    assert {r.temperature for r in requests(config, 2)} == {0.1}


def test_a_manifest_for_completions_decides_on_the_tokens() -> None:
    prompt = PromptFormat(kind="completion", template="{{ m }}", max_tokens=44)
    chain = ChainFormat(m=1)
    manifest = Manifest(name="m", domain="d", estimator="vpo", seed=0, chain=chain, prompt=prompt, context_length=100)
    config = SearchConfig(models=(ModelConfig(name="m", temperature=0.1, max_tokens=9),))
    assert {(r.temperature, r.max_tokens) for r in requests(config, 2, manifest)} == {(0.1, 44)}
