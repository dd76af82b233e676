"""An OpenAI-compatible server whose model is a function: the real protocol on a real port, answers of our choice."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

Answer = Callable[[dict[str, Any]], str]


@asynccontextmanager
async def openai_server(answer: Answer, *, models: tuple[dict[str, Any], ...] = ({"id": "m"},)) -> AsyncIterator[str]:
    """The ``/v1`` URL of a server that answers each request body with ``answer(body)``."""

    async def complete(request: Request) -> JSONResponse:
        body = await request.json()
        text = answer(body)
        chat = "messages" in body
        content = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        choices = [{"index": i, "finish_reason": "stop", **content} for i in range(body.get("n", 1))]
        return JSONResponse({"choices": choices, "usage": {"prompt_tokens": 10, "completion_tokens": 5}})

    async def list_models(_: Request) -> JSONResponse:
        return JSONResponse({"data": list(models)})

    routes = [
        Route("/v1/chat/completions", complete, methods=["POST"]),
        Route("/v1/completions", complete, methods=["POST"]),
        Route("/v1/models", list_models),
    ]
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(Starlette(routes=routes), log_level="critical", lifespan="off", ws="none")
        server = uvicorn.Server(config)
        server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        serving = asyncio.create_task(server._serve([listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            server.should_exit = True
            await serving
