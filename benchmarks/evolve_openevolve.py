"""What :mod:`benchmarks.evolve` measures of OpenEvolve, under an interpreter that has it.

Of ours it imports only what needs the standard library alone. The functions print one JSON object, as those of
:mod:`benchmarks.evolve_ours` do, and measure the same things. The only address that OpenEvolve is given is the stub
model's, on loopback.
"""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import random
import sys
import tempfile
import time
import types
import uuid
from pathlib import Path
from statistics import median

from openevolve.config import DatabaseConfig, LLMModelConfig, load_config
from openevolve.controller import OpenEvolve
from openevolve.database import Program, ProgramDatabase
from openevolve.process_parallel import ProcessParallelController

from benchmarks.stub_model import program
from benchmarks.usage import cpu_seconds, peak_rss_mb

COMPONENTS = tuple(f"t{i}" for i in range(16))
_ISLANDS = 5  # its default
_INSPIRATIONS = 5


def search(folder: str, url: str, iterations: str) -> dict[str, float]:
    """A whole run against a model server, with OpenEvolve's defaults for all that the task's config leaves open."""
    config = load_config(str(Path(folder) / "config.yaml"))
    config.log_level = "ERROR"
    config.llm.api_base = url
    config.llm.models = [LLMModelConfig(**(vars(config.llm.models[0]) | {"api_base": url, "api_key": "none"}))]
    config.llm.evaluator_models = list(config.llm.models)
    with tempfile.TemporaryDirectory(prefix="vpo-benchmark-") as where:
        before = cpu_seconds()
        controller = OpenEvolve(
            str(Path(folder) / "initial_program.py"),
            str(Path(folder) / "evaluator.py"),
            config=config,
            output_dir=where,
        )
        asyncio.run(controller.run(iterations=int(iterations)))
        return {"cpu_s": cpu_seconds() - before}


def population(*sizes: str) -> dict[str, dict[str, float]]:
    """By number of programs held: CPU milliseconds to sample and add (median), to hand all to a worker, to save it.

    files: written by one save. peak_rss_mb: so far.
    """
    found: dict[str, dict[str, float]] = {}
    for size in map(int, sizes):
        rng = random.Random(0)
        database = ProgramDatabase(DatabaseConfig(population_size=2 * size + 1000))
        for i in range(size):
            database.add(_random_program(i, rng), iteration=i, target_island=i % _ISLANDS)
        repeats = 10 if size > 2000 else 40
        costs = []
        for i in range(repeats):
            before = time.process_time()
            parent, _ = database.sample_from_island(i % _ISLANDS, _INSPIRATIONS)
            child = _random_program(size + i, rng)
            child.parent_id = parent.id
            database.add(child, iteration=size + i, target_island=i % _ISLANDS)
            costs.append(time.process_time() - before)
        step = median(costs) * 1000
        found[str(size)] = {"select_insert_ms": step, "hand_over_ms": _hand_over_ms(database)} | _save(database)
    return found


def _hand_over_ms(database: ProgramDatabase) -> float:
    """What every iteration does with the whole population: a snapshot that goes to the worker."""
    before = time.process_time()
    holder = types.SimpleNamespace(database=database)
    pickle.loads(pickle.dumps(ProcessParallelController._create_database_snapshot(holder)))
    return (time.process_time() - before) * 1000


def _save(database: ProgramDatabase) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="vpo-benchmark-") as where:
        before = time.process_time()
        database.save(where, iteration=1)
        spent = (time.process_time() - before) * 1000
        files = sum(path.is_file() for path in Path(where).rglob("*"))
    return {"save_ms": spent, "files": float(files), "peak_rss_mb": peak_rss_mb()}


def _random_program(number: int, rng: random.Random) -> Program:
    reward = {name: float(rng.random() < 0.5) for name in COMPONENTS}
    return Program(
        id=str(uuid.uuid4()),
        code=program(number),
        metrics=reward | {"combined_score": sum(reward.values()) / len(reward)},
        iteration_found=number,
        metadata={"changes": "Full rewrite"},
    )


def main() -> None:
    """``NAME ARGUMENT...`` on the command line: the function and its arguments."""
    logging.disable(logging.CRITICAL)
    functions = {"search": search, "population": population}
    print(json.dumps(functions[sys.argv[1]](*sys.argv[2:])))
