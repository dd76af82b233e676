"""One run of a comparison, as a process: train (or go on), then evaluate at every k and write ``evaluation.json``."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from trainer.assess import assess, figures_by_problem, report
from trainer.comparison import CompareConfig
from trainer.config import EvalConfig, HardwareConfig, TrainConfig, WarmupConfig, load_config
from trainer.files import write_text
from trainer.loop import Training
from trainer.watch import Terminal


def main(path: Path) -> None:
    """Train the configuration at ``path`` and evaluate what came out."""
    config = load_config(path)
    if not (config.output / "trained").exists():
        with Terminal(Console(), config.name, config.train.steps) as terminal:
            Training(config, terminal).run()
        write_text(config.output / "trained", "")
    if not isinstance(config.train, WarmupConfig):
        evaluate_run(config)


def evaluate_base(comparison: CompareConfig) -> dict[int, dict[str, Any]]:
    """The start's own figures, at every number of answers that some arm uses; kept in the output folder."""
    found = {}
    for m in sorted({arm.m for arm in comparison.arms.values()}):
        path = comparison.output / f"start-m{m}.json"
        if not path.exists():
            document = _figures(comparison.start, comparison.evaluation, HardwareConfig(), m)
            write_text(path, json.dumps(document) + "\n")
        found[m] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _figures(checkpoint: Path, evaluation: EvalConfig, hardware: HardwareConfig, m: int | None) -> dict[str, Any]:
    """A checkpoint's report with the figures of every problem, for intervals over runs."""
    manifest, found = assess(checkpoint, evaluation, hardware, m=m)
    rows = figures_by_problem(found, evaluation.answers)
    return {**report(manifest, found, rows, evaluation.answers), "by_problem": rows}


def evaluate_run(config: TrainConfig) -> None:
    """Write what a finished run's model finds, and what its training took."""
    document = _figures(config.output / "model", config.evaluation, config.hardware, None)
    rows = [json.loads(line) for line in (config.output / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    steps = [row for row in rows if "evaluation" not in row]
    document["training"] = {
        "steps": len(steps),
        "tokens": steps[-1]["tokens"],
        "cpu_s": sum(row["cpu_s"] for row in steps),
        "answers": sum(row["answers_per_rollout"] for row in steps) / len(steps),
    }
    write_text(config.output / "evaluation.json", json.dumps(document) + "\n")


def die_with_parent(parent: int) -> None:
    """Have the kernel end this process when process ``parent``, which started it, is gone, however that ends."""
    ctypes.CDLL(None).prctl(1, int(signal.SIGTERM))  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        sys.exit("the comparison that started this run is gone")


if __name__ == "__main__":
    die_with_parent(int(sys.argv[2]))
    main(Path(sys.argv[1]))
