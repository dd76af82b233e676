"""A vLLM server that takes new weights from a trainer both ways, as docs/training.md says; on loopback only."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.model_plan import ServerPlan
from service.model_server import ModelServer, ModelServerError

_ALLOWED = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"}


class SyncPlan(ServerPlan):
    """How such a server is started."""

    def command(self, checkpoint: Path, host: str, port: int) -> list[str]:
        return [*super().command(checkpoint, host, port), "--enable-lora", "--max-lora-rank", "32"]

    def environment(self, inherited: dict[str, str]) -> dict[str, str]:
        return super().environment(inherited) | _ALLOWED


@contextmanager
def sampling_server(checkpoint: Path, *, start_timeout_s: float = 300.0) -> Iterator[ModelServer]:
    """A running server for ``checkpoint``, whose weights a ``reload`` replaces. Raises ``ModelServerError``.

    start_timeout_s: of everything, a request that never ends included.
    """
    server = ModelServer(checkpoint, start_timeout_s=start_timeout_s)
    server.plan = SyncPlan(**{name: getattr(server.plan, name) for name in ServerPlan.__dataclass_fields__})
    with asyncio.Runner() as runner:
        runner.run(_start(server, start_timeout_s))
        try:
            yield server
        finally:
            runner.run(server.stop())


async def _start(server: ModelServer, timeout_s: float) -> None:
    try:
        await asyncio.wait_for(server.start(), timeout_s)
    except TimeoutError:
        raise ModelServerError(
            f"the model server for {server.checkpoint} did not start within {timeout_s:g} s"
        ) from None
