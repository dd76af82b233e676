"""``vpo model serve``: a checkpoint behind an OpenAI-compatible URL, until Ctrl-C."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from evolve.manifest import ManifestError
from service.cli.progress import stop_on_signals
from service.model_server import ModelServer, ModelServerError

app = typer.Typer(no_args_is_help=True, help="Serve a checkpoint with vLLM.")


@app.callback()
def _group() -> None:
    """Serve a checkpoint with vLLM."""


@app.command()
def serve(
    checkpoint: Annotated[Path, typer.Argument(help="A Hugging Face checkpoint folder, with or without vpo.json.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8101,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    name: Annotated[str | None, typer.Option(help="The model's name in requests. (default: the manifest's)")] = None,
    log: Annotated[Path | None, typer.Option(help="File for vLLM's output. (default: a temporary one)")] = None,
) -> None:
    """Start vLLM for CHECKPOINT, wait until it generates, and serve until Ctrl-C."""
    console = Console()
    try:
        server = ModelServer(checkpoint, name=name, host=host, port=port, log=log)
        asyncio.run(_serve(console, server))
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(130) from None
    except (ModelServerError, ManifestError, OSError) as error:
        Console(stderr=True).print(f"vpo model serve: {error}", style="red", markup=False, highlight=False)
        raise typer.Exit(1) from None


async def _serve(console: Console, server: ModelServer) -> None:
    stop = asyncio.Event()

    async def until_stopped() -> None:
        async with server:
            _explain(console, server)
            await server.wait()

    with stop_on_signals(console, stop, then="stopping"):
        console.print(f"starting vLLM for {server.checkpoint} (about half a minute)", markup=False, highlight=False)
        serving = asyncio.ensure_future(until_stopped())
        stopping = asyncio.ensure_future(stop.wait())
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not serving.done():
            serving.cancel()
        try:
            await serving
        except asyncio.CancelledError:
            if not stop.is_set():
                raise


def _explain(console: Console, server: ModelServer) -> None:
    plan = server.plan
    lines = (
        f"{server.name} is ready at {server.url}",
        f"  context {plan.context} tokens, {plan.sequences} requests at once, {plan.device}; its output: {server.log}",
        f"  vpo search TASK --model {server.url}#{server.name}",
        "  Ctrl-C stops it",
    )
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
