"""A check of the trainer on one GPU, in at most 8 minutes: a random model of about a billion parameters is trained with
adapters and in full, sampling by the model itself and by a vLLM server. Prints tokens per second, model-FLOPs
utilisation, and whether steps after a resume are bit-identical.

    python -m benchmarks.gpu [--preset 1b|tiny] [--device cuda|cpu] [--only torch-lora,...] [--seconds 480] [--json]

Every phase is a process of its own with a share of the time that is left; one that does not end is stopped, and what it
had reported by then counts. Without a GPU the preset is ``tiny``: the same code on the CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, show
from benchmarks.flops import ModelSize, peak_flops
from benchmarks.sampling_server import sampling_server
from service.model_server import ModelServerError

PHASES = ("torch-lora", "torch-full", "vllm-lora", "vllm-full")
SHARES = {"checkpoint": 4.0, "torch-lora": 2.5, "torch-full": 3.0, "server": 3.0, "vllm-lora": 1.5, "vllm-full": 2.0}
"""Of the time that is left when a phase starts, relative to those of the phases after it."""
SERVED = "served"
"""The folder whose weights a server's reload replaces; the initial model is read again after a resume."""
CLEANUP_S = 20.0
"""Of the whole time, kept for stopping things (a server may take 15 s) and for printing."""


@dataclass(slots=True)
class Check:
    """What is to be run, where, until when; and what came out. rows: by phase. notes: how each phase ended."""

    preset: str
    device: str
    folder: Path
    deadline: float
    left: list[str]
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def share(self, name: str) -> float:
        """Seconds for a phase that starts now."""
        weights = [SHARES[each] for each in self.left]
        self.left.remove(name)
        return max(0.0, self.deadline - time.monotonic()) * SHARES[name] / sum(weights)

    def run(self, name: str, *arguments: str) -> None:
        """Run a phase in a process of its own and keep what it reports."""
        limit = self.share(name)
        output = self.folder / f"{name}.jsonl"
        command = [sys.executable, "-m", "benchmarks.gpu", "--phase", name, "--folder", str(self.folder)]
        command += ["--preset", self.preset, "--device", self.device, "--seconds", f"{limit:.1f}", *arguments]
        with output.open("wb") as rows, (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=rows, stderr=log, start_new_session=True, env=_environment())
            try:
                ended = f"status {process.wait(timeout=limit)}"
            except subprocess.TimeoutExpired:
                ended = "stopped"
            finally:  # Ctrl-C does not reach a session of its own
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        self.rows[name] = _whole_lines(output)
        self.notes[name] = self._note(name, ended)
        print(f"{name}: {self.notes[name]}", file=sys.stderr)

    def _note(self, name: str, ended: str) -> str:
        steps = sum("step" in row for row in self.rows[name])
        if ended == "status 0":
            return "whole" if name == "checkpoint" or "identical" in self.rows[name][-1] else f"cut after {steps} steps"
        lines = (self.folder / f"{name}.log").read_text(errors="replace").strip().splitlines()
        return f"{ended} after {steps} steps: {lines[-1] if lines and ended != 'stopped' else 'out of time'}"


def _environment() -> dict[str, str]:
    """Of a phase. CUBLAS_WORKSPACE_CONFIG: without it matrix products of a GPU may differ from run to run."""
    return {**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8", "HF_HUB_OFFLINE": "1"}


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    """The rows that a phase reported; the last line may be cut."""
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def figures_of(name: str, rows: list[dict[str, Any]]) -> list[Figure]:
    """Figures of one phase; the first step is left out where there are others."""
    found = {key: value for row in rows if "step" not in row for key, value in row.items()}
    steps = [row for row in rows if "step" in row]
    steps = steps[1:] or steps
    figures = [
        Figure(name=f"{name}_{key}", value=float(found[key]) * factor, unit=unit)
        for key, factor, unit in (("identical", 1, "1: yes"), ("save", 1, "s"), ("peak_bytes", 2**-30, "GiB"))
        if key in found and (found[key] or key == "identical")
    ]
    return figures + _speed(name, found, steps) if steps else figures


def _speed(name: str, found: dict[str, Any], steps: list[dict[str, Any]]) -> list[Figure]:
    """Tokens per second, and model FLOPs over what the device can do where that is known."""
    total = {key: sum(row.get(key, 0.0) for row in steps) for key in steps[0]}
    prompts = total["prompt_tokens" if found["shared_prompts"] else "prompt_tokens_of_rows"]
    trained, written = prompts + total["completion_tokens"], total["completion_tokens"]
    seconds = total["sync"] + total["sample"] + total["update"]
    speeds = {"sample": (written, total["sample"]), "update": (trained, total["update"]), "step": (written, seconds)}
    figures = [
        Figure(name=f"{name}_{part}_tokens_per_s", value=tokens / took, unit="tokens/s")
        for part, (tokens, took) in speeds.items()
    ]
    figures.append(Figure(name=f"{name}_sync", value=total["sync"] / len(steps), unit="s a step"))
    peak = peak_flops(found["device"])
    if peak is None:
        return figures
    size = ModelSize(parameters=found["multiplied"], attention=found["attention"])
    context = (total["prompt_tokens_of_rows"] + written) / total["rows"] / 2  # causal: half of a row, on average
    forward = size.forward(total["prompt_tokens"] + written, context)  # of the reference; sampling takes as many
    update = size.training(trained, context, frozen=name.endswith("lora")) + forward
    step = update + forward
    return [
        *figures,
        Figure(name=f"{name}_update_mfu", value=update / total["update"] / peak, unit="of the peak"),
        Figure(name=f"{name}_step_mfu", value=step / seconds / peak, unit="of the peak"),
    ]


def check(arguments: argparse.Namespace) -> Check:
    """Run the phases that were asked for."""
    only = arguments.only.split(",")
    needed = ["checkpoint", *(["server"] if any(name.startswith("vllm") for name in only) else []), *only]
    with tempfile.TemporaryDirectory() as name:
        deadline = time.monotonic() + arguments.seconds - CLEANUP_S
        found = Check(arguments.preset, arguments.device, Path(name), deadline, sorted(needed, key=[*SHARES].index))
        found.run("checkpoint")
        if found.notes["checkpoint"] == "whole":
            for phase in [phase for phase in only if phase.startswith("torch")]:
                found.run(phase)
            _serve(found, [phase for phase in only if phase.startswith("vllm")])
        return found


def _serve(found: Check, phases: list[str]) -> None:
    """The phases that need a server; without vLLM they are left out."""
    if not phases:
        return
    with ExitStack() as stack:
        try:
            limit = found.share("server")
            served = shutil.copytree(found.folder / "model", found.folder / SERVED)
            server = stack.enter_context(sampling_server(served, start_timeout_s=limit))
        except ModelServerError as error:
            found.notes["server"] = str(error).splitlines()[0]
            print(f"server: {found.notes['server']}", file=sys.stderr)
            return
        for phase in phases:
            found.run(phase, "--endpoint", server.url)


def phase(arguments: argparse.Namespace) -> None:
    """The work of one phase, in its own process; a JSON line for each row."""
    import torch

    from benchmarks.gpu_phase import PRESETS, phase_config, run_phase, write_checkpoint

    deadline = time.monotonic() + arguments.seconds
    torch.use_deterministic_algorithms(True, warn_only=True)

    def report(row: dict[str, Any]) -> None:
        print(json.dumps(row), flush=True)

    name, folder, preset = arguments.phase, arguments.folder, PRESETS[arguments.preset]
    if name == "checkpoint":
        report({"parameters": write_checkpoint(folder / "model", preset)})
        return
    lora, endpoint = name.endswith("lora"), arguments.endpoint
    output = folder / name
    weights = output / "adapters" if lora else folder / SERVED
    server = None if endpoint is None else (endpoint, weights)
    config = phase_config(preset, folder / "model", output, arguments.device, lora=lora, server=server)
    run_phase(config, deadline, report)


def report(found: Check, *, as_json: bool) -> None:
    """Print what came out."""
    figures = [
        Figure(name="parameters", value=float(row["parameters"]), unit="") for row in found.rows.get("checkpoint", [])
    ]
    for name in PHASES:
        figures += figures_of(name, found.rows.get(name, []))
    devices = {row["device"] for rows in found.rows.values() for row in rows if "device" in row}
    show("gpu", figures, as_json=as_json, device=", ".join(sorted(devices)), phases=found.notes)


def main() -> None:
    parser = argparse.ArgumentParser(description="check the trainer on one GPU")
    parser.add_argument("--preset", choices=("1b", "tiny"), help="default: 1b on a GPU, else tiny")
    parser.add_argument("--device", choices=("cuda", "cpu"), help="default: a GPU where there is one")
    parser.add_argument("--only", default=",".join(PHASES), help=f"phases, from {', '.join(PHASES)}")
    parser.add_argument("--seconds", type=float, default=480.0, help="for everything")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    for hidden in ("--phase", "--endpoint"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if odd := set(arguments.only.split(",")) - set(PHASES):
        parser.error(f"--only {arguments.only}: unknown {', '.join(sorted(odd))}; choose from {', '.join(PHASES)}")
    if arguments.device is None:
        import torch

        arguments.device = "cuda" if torch.cuda.is_available() else "cpu"
    arguments.preset = arguments.preset or ("1b" if arguments.device == "cuda" else "tiny")
    if arguments.phase is not None:
        phase(arguments)
    else:
        report(check(arguments), as_json=arguments.json)


if __name__ == "__main__":
    main()
