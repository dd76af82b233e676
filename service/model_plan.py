"""How a vLLM server is started for a checkpoint: sizes from the checkpoint and the machine, then the command line.

The sizes are small on purpose: two or three servers of tiny models, a search and a browser share two cores. A server
that gets more requests than it has room for queues them; it never fails for that.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Literal

import psutil

from evolve.manifest import MANIFEST_NAME, Manifest, read_manifest

_MIB = 2**20
_KV_MIN = 64 * _MIB
_LONGEST_CONTEXT = {"cpu": 4096, "cuda": 32_768}
_MOST_SEQUENCES = {"cpu": 64, "cuda": 256}
_NO_CHUNKS_MIN_BATCH = 2048

# Measured on shared CPU cores: a second OpenMP thread makes a server five times slower, so it gets one.
_CPU_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}
_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
# bfloat16 is emulated on AVX2; `seed` together with chunked prefill kills the engine on CPU.
_CPU_FLAGS = (
    "--dtype",
    "float32",
    "--enforce-eager",
    "--distributed-executor-backend",
    "uni",
    "--no-enable-chunked-prefill",
)


class ModelServerError(RuntimeError):
    """A model cannot be served. The message names the checkpoint, the reason and the fix."""


def installed_device() -> Literal["cpu", "cuda"]:
    """What the installed vLLM runs on. Raises :class:`ModelServerError` where none is installed."""
    devices: tuple[tuple[str, Literal["cpu", "cuda"]], ...] = (("vllm-cpu", "cpu"), ("vllm", "cuda"))
    for package, device in devices:
        try:
            distribution(package)
        except PackageNotFoundError:
            continue
        return device
    raise ModelServerError("vLLM is not installed: run `make install`, or name the URL of a running server instead")


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerPlan:
    """Sizes of one server.

    context: longest prompt plus reply, in tokens. sequences: generated at once; more wait.
    batch: tokens in one step. kv_bytes: memory for keys and values. vocabulary: number of token ids.
    """

    name: str
    device: Literal["cpu", "cuda"]
    context: int
    sequences: int
    batch: int
    kv_bytes: int
    weight_bytes: int
    vocabulary: int
    manifest: Manifest | None

    def command(self, checkpoint: Path, host: str, port: int) -> list[str]:
        """The command line of the server."""
        # The `vllm` script of the CPU package looks for metadata of another name and fails; the module works for both.
        return [
            *(sys.executable, "-m", "vllm.entrypoints.openai.api_server"),
            *("--model", str(checkpoint), "--served-model-name", self.name, "--host", host, "--port", str(port)),
            *("--max-model-len", str(self.context), "--max-num-seqs", str(self.sequences)),
            *("--max-num-batched-tokens", str(self.batch), "--kv-cache-memory-bytes", str(self.kv_bytes)),
            *("--generation-config", "vllm", "--disable-uvicorn-access-log"),
            *(_CPU_FLAGS if self.device == "cpu" else ("--dtype", "auto", "--gpu-memory-utilization", "0.1")),
        ]

    def environment(self, inherited: dict[str, str]) -> dict[str, str]:
        """The server's environment: the inherited one without keys of other services, and what vLLM needs here."""
        kept = {name: value for name, value in inherited.items() if not _is_secret(name)}
        kept.pop("VLLM_CPU_KVCACHE_SPACE", None)  # would override the size planned here
        return kept | _ENVIRONMENT | (_CPU_ENVIRONMENT if self.device == "cpu" else {})


def plan_server(
    checkpoint: Path, *, name: str | None = None, device: Literal["cpu", "cuda"] | None = None
) -> ServerPlan:
    """Sizes for ``checkpoint``, a Hugging Face folder with or without ``vpo.json``.

    Raises :class:`ModelServerError`, :class:`evolve.manifest.ManifestError`.
    """
    device = device or installed_device()
    config = _read_config(checkpoint)
    manifest = read_manifest(checkpoint) if (checkpoint / MANIFEST_NAME).exists() else None
    trained = _field(config, "max_position_embeddings", checkpoint)
    context = min(manifest.context_length if manifest else _LONGEST_CONTEXT[device], trained)
    per_token = _kv_bytes_per_token(config, checkpoint, 4 if device == "cpu" else 2)
    wanted = _MOST_SEQUENCES[device] * context * per_token
    room = psutil.virtual_memory().available // 8
    kv_bytes = max(min(wanted, room if device == "cpu" else wanted), context * per_token, _KV_MIN)
    return ServerPlan(
        name=name or (manifest.name if manifest else checkpoint.resolve().name),
        device=device,
        context=context,
        sequences=_MOST_SEQUENCES[device],
        batch=max(context, _NO_CHUNKS_MIN_BATCH),
        kv_bytes=kv_bytes,
        weight_bytes=sum(file.stat().st_size for file in checkpoint.glob("*.safetensors")),
        vocabulary=_field(config, "vocab_size", checkpoint),
        manifest=manifest,
    )


def _read_config(checkpoint: Path) -> dict[str, Any]:
    path = checkpoint / "config.json"
    try:
        config = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ModelServerError(
            f"{checkpoint} has no config.json: name a Hugging Face checkpoint folder, "
            "or the URL of a running server (http://host:port/v1)"
        ) from None
    except ValueError as error:
        raise ModelServerError(f"{path} is not JSON ({error}): copy the checkpoint again") from None
    if not isinstance(config, dict):
        raise ModelServerError(f"{path} is not a JSON object: copy the checkpoint again")
    inner = config.get("text_config")
    return {**config, **inner} if isinstance(inner, dict) else config


def _field(config: dict[str, Any], field: str, checkpoint: Path) -> int:
    value = config.get(field)
    if not isinstance(value, int) or value < 1:
        raise ModelServerError(f"{checkpoint}/config.json: {field} must be a positive integer, not {value!r}")
    return value


def _kv_bytes_per_token(config: dict[str, Any], checkpoint: Path, width: int) -> int:
    """Bytes that one token's keys and values take: 2 x layers x key-value heads x head size x bytes per number."""
    layers, heads = (_field(config, field, checkpoint) for field in ("num_hidden_layers", "num_attention_heads"))
    kv_heads = config.get("num_key_value_heads") or heads
    head = config.get("head_dim") or _field(config, "hidden_size", checkpoint) // heads
    return 2 * layers * int(kv_heads) * int(head) * width


def _is_secret(name: str) -> bool:
    upper = name.upper()
    return upper in ("DATABASE_URL", "REDIS_URL") or upper.endswith(("_KEY", "_TOKEN", "_SECRET", "_PASSWORD"))
