"""A small model server with the OpenAI API whose answers are known: it improves on a task from request to request."""

from __future__ import annotations

import itertools
import json
import random
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TESTS = 12


@dataclass(frozen=True)
class Problem:
    """A piecewise target: ``then`` where ``condition`` holds, else ``otherwise`` (expressions over ``xs``)."""

    name: str
    condition: str
    then: str
    otherwise: str

    def source(self, body: str) -> str:
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        return f'def f(xs):\n    """{self.name}"""\n{lines}'

    @property
    def ladder(self) -> tuple[str, ...]:
        """Programs from useless to right: an error, one branch everywhere, right for short lists, right."""
        right = f"if {self.condition}:\n    return {self.then}\nreturn {self.otherwise}"
        return (
            self.source("return xs[99]"),
            self.source(f"return {self.then}"),
            self.source(f"if len(xs) > 4:  # not clear yet\n    return xs[4] / 0\n{right}"),
            self.source(right),
        )

    def task(self) -> dict[str, Any]:
        """The task as ``POST /search`` takes it, its expected answers from the target itself."""
        draw = random.Random(self.name)
        scope: dict[str, Any] = {}
        exec(self.ladder[-1], scope)
        inputs = [[draw.randint(-9, 9) for _ in range(draw.randint(1, 6))] for _ in range(TESTS)]
        return {
            "format": "tests",
            "name": self.name,
            "statement": f"Problem {self.name}: write f(xs), a function from one list of integers to another.",
            "entry_point": "f",
            "tests": [{"args": [xs], "expected": scope["f"](list(xs))} for xs in inputs],
        }


PROBLEMS = tuple(
    Problem(name, condition, then, otherwise)
    for name, condition, then, otherwise in (
        ("parity-sort", "sum(xs) % 2 == 0", "sorted(xs)", "xs[::-1]"),
        ("short-double", "len(xs) < 4", "[2 * x for x in xs]", "sorted(set(xs))"),
        ("first-sign", "xs[0] > 0", "[-x for x in xs]", "[abs(x) for x in xs]"),
        ("rising-ends", "xs[0] < xs[-1]", "xs[1:] + xs[:1]", "[x + 1 for x in xs]"),
        ("odd-length", "len(xs) % 2 == 1", "xs[::2]", "[x * x for x in xs]"),
        ("big-total", "sum(xs) > 5", "[max(xs), min(xs)]", "[x for x in xs if x % 2]"),
        ("has-zero", "min(xs) < -4", "[x for x in xs if x > 0]", "sorted(xs, reverse=True)"),
        ("even-first", "xs[0] % 2 == 0", "[sum(xs)]", "[x // 2 for x in xs]"),
    )
)


class ModelServer:
    """Models by name: ``NAME-N`` climbs a rung of a problem's ladder every N requests; others are unknown (404).

    Every endpoint that :meth:`endpoint` gives starts anew, so that what a search gets does not depend on earlier ones.

    While the gate is closed, answers wait; :meth:`allow` lets some through, :meth:`open` all.
    """

    def __init__(self) -> None:
        self._asked: Counter[tuple[str, str, str]] = Counter()
        self._endpoints = itertools.count(1)
        self._lock = threading.Lock()
        self._tickets = threading.Semaphore(0)
        self._opened = threading.Event()
        self._opened.set()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True

    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/{next(self._endpoints)}/v1"

    def close_gate(self) -> None:
        self._opened.clear()

    def allow(self, answers: int) -> None:
        self._tickets.release(answers)

    def open(self) -> None:
        """Let everything through, what waits and what comes."""
        self._opened.set()

    @contextmanager
    def serving(self) -> Iterator[ModelServer]:
        thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.open()
            self._http.shutdown()
            self._http.server_close()
            thread.join()

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        pace = re.fullmatch(r"[a-z]+-(\d+)", body["model"])
        if not pace:
            return 404, {"error": {"message": f"The model `{body['model']}` does not exist."}}
        problem = self._problem(body["messages"][-1]["content"])
        with self._lock:
            self._asked[path, body["model"], problem.name] += 1
            asked = self._asked[path, body["model"], problem.name]
        while not self._opened.is_set() and not self._tickets.acquire(timeout=0.05):
            pass
        texts = [self._text(problem, int(pace[1]), asked, i) for i in range(body.get("n") or 1)]
        return 200, _completion(body["model"], texts, body["messages"])

    def _text(self, problem: Problem, pace: int, asked: int, sample: int) -> str:
        # Problems later in the list take longer; the last one is never solved by a slow model.
        rung = asked // (pace + PROBLEMS.index(problem) * pace // 2)
        top = len(problem.ladder) - (2 if pace > 2 and problem is PROBLEMS[-1] else 1)
        source = problem.ladder[min(max(0, rung - sample), top)]
        return f"```python\n{source}```\n"

    @staticmethod
    def _problem(prompt: str) -> Problem:
        return next(problem for problem in PROBLEMS if f"Problem {problem.name}:" in prompt)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, answer = server.answer(self.path, body)
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def handle(self) -> None:
                with suppress(ConnectionError):  # a cancelled search hangs up
                    super().handle()

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


def _completion(model: str, texts: list[str], messages: list[dict[str, str]]) -> dict[str, Any]:
    prompt = sum(len(message["content"]) for message in messages) // 4
    written = sum(len(text) for text in texts) // 4
    return {
        "id": "completion",
        "object": "chat.completion",
        "model": model,
        "choices": [
            {"index": i, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            for i, text in enumerate(texts)
        ],
        "usage": {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written},
    }
