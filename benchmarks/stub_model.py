"""An OpenAI-compatible server on loopback, in a process of its own, that answers at once (or after a fixed time).

Every answer is a complete program in a fence that differs from all earlier ones, so that a search keeps judging and
inserting. What the server costs is not measured: it is nobody's part of an iteration.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def stub_model(latency_s: float = 0.0) -> Iterator[str]:
    """The ``/v1`` URL of a server that answers after ``latency_s``."""
    command = [sys.executable, "-c", f"from benchmarks.stub_model import serve; serve({latency_s!r})"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            port = process.stdout.readline().strip()
            if not port:
                raise RuntimeError("the stub model did not start")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def program(number: int) -> str:
    """A program of 4 to 20 lines, different for every number."""
    rng = random.Random(number)
    lines = [f"    x{i} = x * {rng.randint(1, 10**6)} + {number}" for i in range(rng.randint(1, 17))]
    return "\n".join(("# EVOLVE-BLOCK-START", "def f(x):", *lines, "    return x0", "# EVOLVE-BLOCK-END")) + "\n"


def serve(latency_s: float) -> None:
    """Serve until the process ends; the first line of stdout is the port."""
    asyncio.run(_Server(latency_s).serve())


class _Server:
    """As much of HTTP/1.1 as clients need that keep their connections."""

    def __init__(self, latency_s: float) -> None:
        self._latency_s, self._answered = latency_s, 0

    async def serve(self) -> None:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=1024)
        print(server.sockets[0].getsockname()[1], flush=True)
        async with server:
            await server.serve_forever()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
                )
                body = json.loads(await reader.readexactly(length))
                await asyncio.sleep(self._latency_s)
                content = json.dumps(self._answer(body)).encode()
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    b"Content-Length: " + str(len(content)).encode() + b"\r\n\r\n" + content
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, body: dict[str, Any]) -> dict[str, Any]:
        choices = []
        for index in range(body.get("n") or 1):
            self._answered += 1
            text = f"A new attempt.\n```python\n{program(self._answered)}```\n"
            message = {"role": "assistant", "content": text}
            choices.append({"index": index, "finish_reason": "stop", "message": message})
        return {
            "id": str(self._answered),
            "object": "chat.completion",
            "created": 0,
            "model": body.get("model", "stub"),
            "choices": choices,
            "usage": {"prompt_tokens": 500, "completion_tokens": 100, "total_tokens": 600},
        }
