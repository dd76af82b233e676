"""Several models behind one client: each request goes to the model that the search chose for it."""

from __future__ import annotations

from collections.abc import Mapping

from evolve.config import SearchConfig
from evolve.models import ModelClient, OpenAIModel
from evolve.program import Reply
from evolve.request import Request


class Ensemble:
    """A :class:`evolve.models.ModelClient`. clients: by the names in ``SearchConfig.models``."""

    def __init__(self, clients: Mapping[str, ModelClient]) -> None:
        if not clients:
            raise ValueError("an ensemble needs at least one model client")
        self.clients = dict(clients)

    async def complete(self, request: Request) -> Reply:
        """The reply of the request's model. Raises :class:`evolve.models.ModelError`, ``ValueError`` without one."""
        client = self.clients.get(request.model or "")
        if client is None:
            raise ValueError(f"the request is for model {request.model!r}, and there is only {', '.join(self.clients)}")
        return await client.complete(request)

    async def aclose(self) -> None:
        """Close the clients that have connections."""
        for client in self.clients.values():
            if isinstance(client, OpenAIModel):
                await client.aclose()


def check_clients(config: SearchConfig, model: ModelClient) -> None:
    """Raise ``ValueError`` where a configuration names several models and ``model`` cannot tell them apart."""
    names = [entry.name for entry in config.models]
    if len(names) < 2:
        return
    known = model.clients if isinstance(model, Ensemble) else {}
    if missing := [name for name in names if name not in known]:
        raise ValueError(f"models {', '.join(missing)} have no client: give an Ensemble with one for each name")
