"""A tiny OpenAI-compatible server on this machine, whose replies depend on the request alone."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

ANSWERS = (
    "def f(xs):\n    return xs\n",
    "def f(xs):\n    return xs[::-1]\n",
    "def f(xs):\n    return sorted(xs)\n",
    "def f(xs):\n    return sorted(xs, reverse=True)\n",
    "def f(xs):\n    return []\n",
    "def f(xs):\n    return 1 / 0\n",
)


def answer(seed: int, sample: int) -> str:
    """The text for one sample: one of ANSWERS in a fence, made different from all others by a constant."""
    number = (seed * 31 + sample * 7919) % 1_000_003
    source = ANSWERS[number % len(ANSWERS)].replace("\n    ", f"\n    unused = {number}\n    ", 1)
    return f"Here it is:\n```python\n{source}```\n"


class FakeModel:
    """Start with ``with``. delay_s: before each reply. status: answered instead of 200. texts: replies for every
    request, instead of those made from its seed. Seeds asked for are kept."""

    def __init__(self) -> None:
        self.delay_s = 0.0
        self.status = 200
        self.texts: list[str] | None = None
        self.seeds: list[int] = []
        self.keys: list[str | None] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                fake.seeds.append(body["seed"])
                fake.keys.append(self.headers.get("Authorization"))
                time.sleep(fake.delay_s)
                status, reply = fake.reply(body)
                data = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

            def handle(self) -> None:
                with suppress(ConnectionError):  # a cancelled call
                    super().handle()

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def reply(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.status != 200:
            return self.status, {"error": {"message": f"status {self.status}"}}
        texts = self.texts or [answer(body["seed"], i) for i in range(body["n"])]
        choices = [
            {"index": i, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            for i, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": 100, "completion_tokens": 20 * len(texts)}
        return 200, {"choices": choices, "usage": usage}

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
