"""A real HTTP server on loopback whose answers a test decides."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

Handler = Callable[[dict[str, Any]], Awaitable[tuple[int, bytes]]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    """A real HTTP server on a free loopback port; gives its base URL."""

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        body = b""
        while (event := await receive())["type"] == "http.request":
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        status, content = await handler(json.loads(body or b"{}") | {"path": scope["path"]})
        await send(
            {"type": "http.response.start", "status": status, "headers": [(b"content-type", b"application/json")]}
        )
        await send({"type": "http.response.body", "body": content})

    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            server.should_exit = True
            await task
