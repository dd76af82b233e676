"""What tests ask of OpenEvolve itself, run under an interpreter that has it (:func:`call`); each prints one JSON object.

``python -m tests.evolve.openevolve_peer`` records :data:`RECORDED` anew: a real run of OpenEvolve on a toy task against
the benchmarks' stub model. Tests that need no OpenEvolve read that.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RECORDED = Path(__file__).with_name("openevolve_run.json")
ITERATIONS = 15

EVALUATOR = '''"""Scores by a checksum; some programs fail, some have a metric that is no number, some a long artifact."""

import zlib

from openevolve.evaluation_result import EvaluationResult


def evaluate(path):
    with open(path) as file:
        text = file.read()
    value = zlib.crc32(text.encode())
    if value % 7 == 3:
        raise ValueError("no number today")
    metrics = {"combined_score": value % 997 / 1000, "first": value % 2, "loss": value // 2 % 11}
    if value % 5 == 0:
        metrics["noise"] = float("nan")
    lines = len(text.splitlines())
    return EvaluationResult(metrics=metrics, artifacts={"lines": str(lines), "stars": "*" * 4 * lines})
'''
CONFIG = f"""max_iterations: {ITERATIONS}
checkpoint_interval: {ITERATIONS}
diff_based_evolution: false
random_seed: 3
llm:
  models:
    - name: stub
      weight: 1.0
evaluator:
  cascade_evaluation: false
  parallel_evaluations: 1
  max_retries: 0
database:
  num_islands: 3
  migration_interval: 3
  log_prompts: false
  artifact_size_threshold: 40
"""


def write_task(folder: Path) -> Path:
    """The toy task, in a new folder ``task``."""
    from benchmarks.stub_model import program

    task = folder / "task"
    task.mkdir()
    for name, text in (("initial_program.py", program(0)), ("evaluator.py", EVALUATOR), ("config.yaml", CONFIG)):
        (task / name).write_text(text, encoding="utf-8")
    return task


def search(task: str, url: str, iterations: str, output: str, checkpoint: str = "") -> dict[str, Any]:
    """A run, from a checkpoint where one is named."""
    from openevolve.config import LLMModelConfig, load_config
    from openevolve.controller import OpenEvolve

    config = load_config(str(Path(task) / "config.yaml"))
    config.log_level = "ERROR"
    config.llm.api_base = url
    config.llm.models = [LLMModelConfig(**(vars(config.llm.models[0]) | {"api_base": url, "api_key": "none"}))]
    config.llm.evaluator_models = list(config.llm.models)
    files = [str(Path(task) / name) for name in ("initial_program.py", "evaluator.py")]
    controller = OpenEvolve(*files, config=config, output_dir=output)
    asyncio.run(controller.run(iterations=int(iterations), checkpoint_path=checkpoint or None))
    return _summary(controller.database)


def load(task: str, checkpoint: str) -> dict[str, Any]:
    """What OpenEvolve finds in a checkpoint."""
    from openevolve.config import load_config
    from openevolve.database import ProgramDatabase

    database = ProgramDatabase(load_config(str(Path(task) / "config.yaml")).database)
    database.load(checkpoint)
    return _summary(database)


def _summary(database: Any) -> dict[str, Any]:
    best = database.get_best_program()
    return {
        "programs": {
            program.id: [program.code, program.parent_id, program.iteration_found, program.metrics]
            for program in database.programs.values()
        },
        "artifacts": {name: database.get_artifacts(name) for name in database.programs},
        "islands": [sorted(island) for island in database.islands],
        "best": best.id,
        "top": database.get_top_programs(1)[0].id,
        "island_best": database.island_best_programs,
        "archive": sorted(database.archive),
        "iteration": database.last_iteration,
        "generations": database.island_generations,
    }


def call(peer: str, function: str, *arguments: str, folder: Path) -> dict[str, Any]:
    """A function of this module under the interpreter ``peer``, in ``folder``."""
    foreign = ("PYTHON", "OPENAI", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(foreign)}
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.evolve.openevolve_peer import main; main()"
    argv = [peer, "-c", code, function, *arguments]
    environment = kept | {"OMP_NUM_THREADS": "1", "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main() -> None:
    """``NAME ARGUMENT...`` on the command line: the function and its arguments."""
    logging.disable(logging.CRITICAL)
    print(json.dumps({"search": search, "load": load}[sys.argv[1]](*sys.argv[2:])))


def unpack(folder: Path) -> Path:
    """Write the recorded run into ``folder``: ``task``, ``output/checkpoints/checkpoint_15`` and ``artifacts``."""
    for name, text in json.loads(RECORDED.read_text(encoding="utf-8")).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "output" / "checkpoints" / f"checkpoint_{ITERATIONS}"


def record() -> None:
    """Run OpenEvolve, and keep what it wrote."""
    from benchmarks.peers import interpreter_with
    from benchmarks.stub_model import stub_model

    peer = interpreter_with("openevolve==0.4.0", module="openevolve")
    with tempfile.TemporaryDirectory(prefix="vpo-record-") as where, stub_model() as url:
        folder = Path(where)
        task = write_task(folder)
        call(peer, "search", str(task), url, str(ITERATIONS), "output", folder=folder)
        kept = [
            path for part in ("task", "output/checkpoints", "artifacts") for path in sorted((folder / part).rglob("*"))
        ]
        texts = [path for path in kept if path.is_file() and path.parent.name != "__pycache__"]
        files = {str(path.relative_to(folder)): _without_paths(path.read_text(encoding="utf-8")) for path in texts}
    RECORDED.write_text(json.dumps(files, indent=1) + "\n", encoding="utf-8")


def _without_paths(text: str) -> str:
    """Without the folders in tracebacks, which are those of the machine that recorded it."""
    return re.sub(r'File "[^"]*/', 'File "', text)


if __name__ == "__main__":
    record()
