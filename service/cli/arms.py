"""``--model`` on the command line: URLs of running servers and checkpoint folders, as arms of a search; or ``task``."""

from __future__ import annotations

import asyncio
import math
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from evolve.endpoints import Endpoint, check_key_variable
from evolve.manifest import MANIFEST_NAME, Manifest, read_manifest
from evolve.openevolve_models import configured_endpoints
from evolve.task import OpenEvolveTask, TestsTask
from evolve.transport import check_url, proxy_may_reach
from service.model_server import ModelServer
from service.spec import Arm

OF_TASK = "task"  # the models that the task itself names; a checkpoint folder of this name is ./task
_LABEL = re.compile(r"([\w.-]+)=(.+)", re.DOTALL)


class ModelChoiceError(ValueError):
    """A ``--model`` cannot be used; the message says why and how to write it."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """One ``--model``: ``[LABEL=]URL[#NAME]`` or ``[LABEL=]FOLDER``; with neither, the task's own models."""

    label: str | None
    url: str | None = None
    model: str | None = None
    folder: Path | None = None

    @property
    def of_task(self) -> bool:
        return self.url is None and self.folder is None

    @property
    def text(self) -> str:
        """It as :func:`parse_choice` reads it, wherever the next command is typed."""
        url = f"{self.url}#{self.model}" if self.model else self.url
        where = str(self.folder.resolve()) if self.folder else url or OF_TASK
        return f"{self.label}={where}" if self.label else str(where)


def parse_choice(text: str) -> ModelChoice:
    """Read one ``--model``. Raises :class:`ModelChoiceError`."""
    label, rest = None, text
    if (match := _LABEL.fullmatch(text)) and not Path(text).exists():
        label, rest = match.groups()
    if rest.startswith(("http://", "https://")):
        url, _, model = rest.partition("#")
        try:
            return ModelChoice(label, url=check_url(url), model=model or None)
        except ValueError as error:
            raise ModelChoiceError(f"--model: the URL {error}") from None  # without the URL, which may hold a password
    if rest == OF_TASK:
        return ModelChoice(label)
    folder = Path(rest).expanduser()
    if not folder.is_dir():
        raise ModelChoiceError(
            f"--model {text}: {folder} is neither a checkpoint folder nor a URL: "
            "write a folder, http://HOST:PORT/v1#MODEL, or task for the models that the task names"
        )
    return ModelChoice(label, folder=folder)


@asynccontextmanager
async def open_arms(
    choices: Sequence[ModelChoice],
    *,
    samples: int | None,
    answers: int,
    api_key_env: str | None,
    tell: Callable[[str], None],
    tasks: Sequence[TestsTask | OpenEvolveTask] = (),
    serve: bool = True,
) -> AsyncIterator[tuple[Arm, ...]]:
    """The arms for ``choices``; checkpoint folders are served for as long as the context lasts, all started at once.

    tasks: of the search, where they are to name the models; ``api_key_env`` is the key of those that name none.
    samples: completions per request of every arm; ``None`` gives each arm as many as make all arms judge equally many
    programs per iteration. answers: asked for in one completion of a model without a manifest. serve: whether the
    folders are really served; without it their arms have an endpoint where nothing answers.

    Raises :class:`ModelChoiceError`, :class:`service.model_server.ModelServerError`.
    """
    try:
        check_key_variable(api_key_env)  # before what it names is sent anywhere
    except ValueError as error:
        raise ModelChoiceError(f"--api-key-env {error}") from None
    servers = [ModelServer(choice.folder) if choice.folder else None for choice in choices]
    named = _named_models(tasks, api_key_env) if any(choice.of_task for choice in choices) else ()
    started = [server for server in servers if server and serve]
    try:
        if started:
            tell(f"starting vLLM for {', '.join(server.name for server in started)} (about half a minute)")
        await _all([server.start() for server in started])
        key = os.environ.get(api_key_env, "") if api_key_env else ""
        found = await _all([_resolve(*pair, key, named) for pair in zip(choices, servers, strict=True)])
        yield _make_arms(choices, found, samples=samples, answers=answers, api_key_env=api_key_env)
    finally:
        await asyncio.gather(*(server.stop() for server in started))


async def _all(coroutines: Sequence[Any]) -> list[Any]:
    """All results; the first failure ends the others and is raised as it is."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


@dataclass(frozen=True, slots=True)
class _Endpoint:
    url: str
    model: str
    manifest: Manifest | None
    models: tuple[Endpoint, ...] = ()


async def _resolve(choice: ModelChoice, server: ModelServer | None, key: str, named: tuple[Endpoint, ...]) -> _Endpoint:
    if choice.of_task:
        return _Endpoint("", OF_TASK, None, named)
    if server is not None:
        return _Endpoint(server.url, server.name, server.manifest)
    assert choice.url is not None  # a choice is a folder or a URL
    listed = await _list_models(choice.url, key)
    names = [str(model.get("id")) for model in listed]
    name = choice.model or (names[0] if len(names) == 1 else None)
    if name is None:
        shown = ", ".join(names) or "none that it tells"
        raise ModelChoiceError(f"{choice.url} serves several models ({shown}): choose one, {choice.url}#MODEL")
    if names and name not in names:
        raise ModelChoiceError(
            f"{choice.url} serves {', '.join(names)}, but no {name!r}: write {choice.url}#{names[0]}"
        )
    root = next((model.get("root") for model in listed if model.get("id") == name), None)
    return _Endpoint(choice.url, name, _local_manifest(root))


def _named_models(tasks: Sequence[TestsTask | OpenEvolveTask], api_key_env: str | None) -> tuple[Endpoint, ...]:
    """The models that all tasks name. Raises :class:`ModelChoiceError` where they do not, or not the same."""
    found: dict[tuple[Endpoint, ...], str] = {}
    for task in tasks:
        if not isinstance(task, OpenEvolveTask):
            raise ModelChoiceError(f"--model task: task {task.name} cannot name models: give --model a URL or a folder")
        try:
            found.setdefault(configured_endpoints(task), task.name)
        except ValueError as error:
            raise ModelChoiceError(f"--model task: task {task.name}: {error}") from None
    if len(found) != 1:
        names = " and ".join(list(found.values())[:2])
        raise ModelChoiceError(f"--model task: tasks {names} name different models: search them one at a time")
    models = next(iter(found))
    return tuple(
        model if model.api_key_env else model.model_copy(update={"api_key_env": api_key_env}) for model in models
    )


def described_models(arms: Iterable[Arm]) -> Iterator[str]:
    """A line for each arm of several models, for the user to see which key goes where."""
    for arm in arms:
        if arm.models:
            yield f"the models of {arm.name}: " + ", ".join(map(_described, arm.models))


def _described(model: Endpoint) -> str:
    key = f", key from {model.api_key_env}" if model.api_key_env else ""
    return f"{model.name} at {model.endpoint} (weight {model.weight:g}{key})"


async def _list_models(url: str, key: str) -> list[dict[str, Any]]:
    """What the server lists; nothing where it has no list. Raises :class:`ModelChoiceError` where nothing answers."""
    try:
        async with httpx.AsyncClient(timeout=20.0, trust_env=proxy_may_reach(url)) as client:
            response = await client.get(f"{url}/models", headers={"Authorization": f"Bearer {key}"} if key else {})
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise ModelChoiceError(
            f"nothing answers at {url} ({type(error).__name__}): is the server running, does the URL end in /v1?"
        ) from None
    try:
        models = response.json()["data"]
        return [model for model in models if isinstance(model, dict)]
    except (ValueError, KeyError, TypeError):
        return []


def _local_manifest(root: object) -> Manifest | None:
    """The manifest beside the weights, where the server runs on this machine (vLLM tells the folder it serves)."""
    if isinstance(root, str) and os.path.isabs(root) and (Path(root) / MANIFEST_NAME).is_file():
        return read_manifest(Path(root))
    return None


def _make_arms(
    choices: Sequence[ModelChoice],
    found: Sequence[_Endpoint],
    *,
    samples: int | None,
    answers: int,
    api_key_env: str | None,
) -> tuple[Arm, ...]:
    per_sample = [endpoint.manifest.chain.m if endpoint.manifest else answers for endpoint in found]
    equal = math.lcm(*per_sample)
    arms: list[Arm] = []
    for choice, endpoint, m in zip(choices, found, per_sample, strict=True):
        where: dict[str, Any] = {"endpoint": endpoint.url, "model": endpoint.model, "api_key_env": api_key_env}
        arms.append(
            Arm(
                name=_unused(choice.label or endpoint.model, [arm.name for arm in arms]),
                **({"models": endpoint.models} if endpoint.models else where),
                manifest=endpoint.manifest,
                samples=samples if samples is not None else equal // m,
                answers=None if endpoint.manifest else answers,
            )
        )
    return tuple(arms)


def _unused(name: str, taken: Sequence[str]) -> str:
    return next(
        candidate for i in range(1, len(taken) + 2) if (candidate := name if i == 1 else f"{name}-{i}") not in taken
    )
