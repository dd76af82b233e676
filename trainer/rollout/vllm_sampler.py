"""Sampling by a vLLM server over HTTP, with weight sync.

One request per rollout, with a seed derived from the rollout's key: the same keys are the same requests. Prompts go as
token ids; the server shares their prefixes by its cache. Every reply brings the server's log-probability of each token,
for the correction of :func:`trainer.loss.truncated_importance`.

New weights go through a folder that both see. As adapters: ``load_lora_adapter`` under a name of the step
(``--enable-lora``, ``VLLM_ALLOW_RUNTIME_LORA_UPDATING=1``). In full: the served checkpoint is replaced and
``reload_weights`` called through the development endpoints (``VLLM_SERVER_DEV_MODE=1``; never make those public). After
each swap the server's log-probabilities of a probe are compared with the trainer's: a server that reloads tied
embeddings serves wrong weights without a word, and so may others.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import httpx
import torch
from transformers import PreTrainedTokenizerFast

from evolve.randomness import derived_seed
from evolve.transport import proxy_may_reach
from trainer.checkpoint import write_model
from trainer.config import TrainConfig, VllmSamplerConfig
from trainer.domains.base import Prompt
from trainer.engine import Engine
from trainer.lora import ADAPTER_CONFIG, write_adapter
from trainer.rollout.base import Key, Rollouts, owners, pad_prompts, prompt_tokens

_ATTEMPTS = 5
_PROBE_TOKENS = 16


class SamplerError(RuntimeError):
    """The server cannot be used for sampling; the message says what it answered and what to do."""


class VllmSampler:
    """A :class:`trainer.rollout.base.Sampler` by the server of ``config.endpoint``."""

    def __init__(
        self, config: VllmSamplerConfig, tokenizer: PreTrainedTokenizerFast, engine: Engine, training: TrainConfig
    ) -> None:
        self._config, self._tokenizer, self._engine, self._training = config, tokenizer, engine, training
        self._model, self._synced = config.model, -1

    def sample(
        self, prompts: Sequence[Prompt], keys: Sequence[Sequence[Key]], *, max_tokens: int, temperature: float = 1.0
    ) -> Rollouts:
        """Sample ``len(keys[p])`` completions for each prompt; raises :class:`SamplerError`."""
        rows = [prompt_tokens(prompt, self._tokenizer) for prompt in prompts]
        requests = [
            completion_request(self._model, row, key, max_tokens=max_tokens, temperature=temperature)
            for row, prompt_keys in zip(rows, keys, strict=True)
            for key in prompt_keys
        ]
        choices = asyncio.run(self._complete(requests))
        ids, mask = pad_prompts(rows, self._tokenizer.pad_token_id)
        return self._collect(ids, mask, owners(len(prompts), len(keys[0])), choices)

    def sync(self, model: torch.nn.Module, step: int) -> None:
        """Have the server sample from the engine's weights after ``step`` steps, and check that it does."""
        del model
        if step == self._synced:
            return
        lora = self._training.lora
        weights = self._engine.weights() if lora is None else {}
        if self._engine.world.main:
            if lora is None:
                self._reload(weights)
            else:
                write_adapter(self._adapter(step), self._engine.model, lora, str(self._training.init))
                name = self._name(step)
                self._unload(name)  # a resumed run may have loaded it before
                self._post("load_lora_adapter", {"lora_name": name, "lora_path": str(self._adapter(step))})
                self._drop_adapters(step)
        self._engine.world.wait()
        if lora is not None:
            self._model = self._name(step)
        self._probe(step)
        self._synced = step

    def _name(self, step: int) -> str:
        return f"{self._training.name}-step-{step}"

    def _adapter(self, step: int) -> Path:
        return self._config.weights.resolve() / f"step-{step:08d}"

    def _drop_adapters(self, newest: int) -> None:
        """Forget all adapters but the newest, on the server and on disk."""
        for folder in [path.parent for path in self._config.weights.resolve().glob(f"step-*/{ADAPTER_CONFIG}")]:
            if folder != self._adapter(newest):
                step = int(folder.name.removeprefix("step-"))
                self._unload(self._name(step))
                shutil.rmtree(folder)

    def _unload(self, name: str) -> None:
        """Have the server forget an adapter; one that it does not know is fine."""
        self._post("unload_lora_adapter", {"lora_name": name}, allow={httpx.codes.BAD_REQUEST, httpx.codes.NOT_FOUND})

    def _reload(self, weights: dict[str, torch.Tensor]) -> None:
        folder = self._config.weights.resolve()
        if not folder.is_dir():
            raise SamplerError(f"train.sampler.weights: {folder} is no folder; name the checkpoint that is served")
        exact = self._training.hardware.precision == "float32"  # rounding would make the server's policy another one
        write_model(folder, self._engine.model, weights, torch.float32 if exact else torch.bfloat16)
        root = self._config.endpoint.rstrip("/").removesuffix("/v1")
        self._post(f"{root}/collective_rpc", {"method": "reload_weights"})
        self._post(f"{root}/reset_prefix_cache", {})

    def _probe(self, step: int) -> None:
        """Compare log-probabilities of a short generation. Raises :class:`SamplerError` where they differ."""
        prompt = prompt_tokens("def", self._tokenizer)
        request = completion_request(
            self._model, prompt, (self._training.seed, step, "probe"), max_tokens=_PROBE_TOKENS, temperature=1.0
        )
        choices = asyncio.run(self._complete([request]))
        ids, mask = pad_prompts([prompt], self._tokenizer.pad_token_id)
        rollouts = self._collect(ids, mask, owners(1, 1), choices).to(self._engine.world.device)
        with torch.no_grad():
            own, _ = self._engine.log_probabilities(rollouts, 1.0)
        assert rollouts.log_sampler is not None
        gap = float(((own - rollouts.log_sampler).abs() * rollouts.mask).sum() / rollouts.mask.sum())
        if gap > self._config.tolerance:
            raise SamplerError(
                f"after step {step} the server's log-probabilities of a probe differ by {gap:.3f} nats a token from the"
                f" trainer's (train.sampler.tolerance {self._config.tolerance}): it does not serve the weights it was"
                " sent; untie the embeddings or restart it"
            )

    def _collect(
        self, ids: torch.Tensor, mask: torch.Tensor, owner: torch.Tensor, choices: Sequence[dict[str, Any]]
    ) -> Rollouts:
        width = max(len(choice["token_ids"]) for choice in choices)
        tokens = torch.full((len(choices), width), self._tokenizer.pad_token_id)
        logs, used = torch.zeros(len(choices), width), torch.zeros((len(choices), width), dtype=torch.bool)
        for row, choice in enumerate(choices):
            count = len(choice["token_ids"])
            tokens[row, :count] = torch.tensor(choice["token_ids"])
            logs[row, :count] = torch.tensor(choice["logprobs"]["token_logprobs"], dtype=torch.float32)
            used[row, :count] = True
        finished = [choice["finish_reason"] == "stop" for choice in choices]
        ends = [choice["token_ids"][-1] == self._tokenizer.eos_token_id for choice in choices]
        bodies = [choice["token_ids"][: -1 if end else None] for choice, end in zip(choices, ends, strict=True)]
        return Rollouts(ids, mask, owner, tokens, used, self._tokenizer.batch_decode(bodies), finished, logs)

    async def _complete(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The one choice of each request's answer, in order."""
        gate = asyncio.Semaphore(self._config.concurrency)
        proxy = proxy_may_reach(self._config.endpoint)
        async with httpx.AsyncClient(timeout=self._config.timeout_s, trust_env=proxy) as client:

            async def one(request: dict[str, Any]) -> dict[str, Any]:
                async with gate:
                    return await self._ask(client, request)

            return list(await asyncio.gather(*(one(request) for request in requests)))

    async def _ask(self, client: httpx.AsyncClient, request: dict[str, Any]) -> dict[str, Any]:
        url = f"{self._config.endpoint.rstrip('/')}/completions"
        for attempt in range(_ATTEMPTS):
            try:
                response = await client.post(url, json=request)
            except httpx.TransportError as error:
                problem = f"{type(error).__name__}: {error}"
            else:
                if response.status_code == httpx.codes.OK:
                    return _checked(response.json()["choices"][0], url)
                problem = f"status {response.status_code}: {response.text[:300]}"
                if response.status_code < httpx.codes.INTERNAL_SERVER_ERROR:
                    break
            await asyncio.sleep(2.0**attempt)
        raise SamplerError(f"{url} did not answer: {problem}; is the server of train.sampler.endpoint up?")

    def _post(self, path: str, document: dict[str, Any], *, allow: Collection[int] = ()) -> None:
        url = path if "://" in path else f"{self._config.endpoint.rstrip('/')}/{path}"
        try:
            response = httpx.post(url, json=document, timeout=self._config.timeout_s, trust_env=proxy_may_reach(url))
        except httpx.TransportError as error:
            raise SamplerError(f"{url} did not answer: {type(error).__name__}: {error}; is the server up?") from None
        if response.status_code != httpx.codes.OK and response.status_code not in allow:
            problem = f"status {response.status_code}: {response.text[:300]}"
            raise SamplerError(f"{url}: {problem}; start the server as docs/training.md says")


def completion_request(
    model: str, prompt: Sequence[int], key: Key, *, max_tokens: int, temperature: float
) -> dict[str, Any]:
    """The body of one rollout's request; a function of its arguments alone.

    Everything that a served checkpoint's ``generation_config.json`` could set is said: the server would sample from
    another distribution than the one whose log-probabilities it reports.
    """
    return {
        "model": model,
        "prompt": list(prompt),
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_p": 1.0,
        "top_k": -1,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "seed": derived_seed(*key),
        "logprobs": 0,
        "return_token_ids": True,
        "skip_special_tokens": False,
    }


def _checked(choice: dict[str, Any], url: str) -> dict[str, Any]:
    """A choice that has what training needs."""
    logs = choice.get("logprobs") or {}
    if not choice.get("token_ids") or len(logs.get("token_logprobs", ())) != len(choice["token_ids"]):
        raise SamplerError(f"{url} answered without token ids or log-probabilities: it must be vLLM 0.12 or newer")
    return choice
