"""Share of the modules that are chosen right: a search space without a slope, where good parts must be combined."""

import importlib.util

from openevolve.evaluation_result import EvaluationResult

RIGHT = {"loader": "csv", "cleaner": "fold", "splitter": "words", "ranker": "count"}
CHOICES = {
    "loader": {"csv", "json", "xml", "parquet"},
    "cleaner": {"none", "strip", "lower", "fold"},
    "splitter": {"words", "lines", "sentences", "characters"},
    "ranker": {"count", "length", "alphabet", "random"},
}


def load(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


def evaluate(program_path):
    """The score; unknown choices are named in an artifact."""
    chosen = load(program_path).configure()
    odd = [f"{name}: {chosen.get(name)!r}" for name in CHOICES if chosen.get(name) not in CHOICES[name]]
    right = sum(chosen.get(name) == value for name, value in RIGHT.items())
    return EvaluationResult(
        metrics={
            "correct": right / len(RIGHT),
            "known": 1 - len(odd) / len(RIGHT),
            "combined_score": right / len(RIGHT),
        },
        artifacts={"unknown choices": ", ".join(odd)} if odd else {},
    )
