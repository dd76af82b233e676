"""An OpenAI-compatible server whose model is a function: the real protocol on a real port, answers of our choice."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.evolve.http_server import serving

Answer = Callable[[dict[str, Any]], str]


@asynccontextmanager
async def openai_server(answer: Answer, *, models: tuple[dict[str, Any], ...] = ({"id": "m"},)) -> AsyncIterator[str]:
    """The ``/v1`` URL of a server that answers each request body with ``answer(body)``."""

    async def respond(body: dict[str, Any]) -> tuple[int, bytes]:
        path = body.pop("path")
        if path == "/v1/models":
            return 200, json.dumps({"data": models}).encode()
        if path not in ("/v1/chat/completions", "/v1/completions"):
            return 404, b"{}"
        text = answer(body)
        content = {"message": {"role": "assistant", "content": text}} if "messages" in body else {"text": text}
        choices = [{"index": i, "finish_reason": "stop", **content} for i in range(body.get("n", 1))]
        return 200, json.dumps({"choices": choices, "usage": {"prompt_tokens": 10, "completion_tokens": 5}}).encode()

    async with serving(respond) as url:
        yield url
