"""How many spheres of one size touch one in the middle, in 4 dimensions, relative to the 24 that are possible."""

import importlib.util
from itertools import combinations

DIMENSION = 4
TARGET = 24


def load(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


def evaluate(program_path):
    """The number of centres, exactly, in integers."""
    centres = [tuple(map(int, centre)) for centre in load(program_path).centres(DIMENSION)][:200]
    if not centres or any(len(centre) != DIMENSION or not any(centre) for centre in centres):
        raise ValueError(f"vectors of {DIMENSION} integers are needed, none of them zero")
    longest = max(sum(x * x for x in centre) for centre in centres)
    close = sum(sum((x - y) ** 2 for x, y in zip(a, b, strict=False)) < longest for a, b in combinations(centres, 2))
    return {
        "centres": len(centres),
        "validity": 1 / (1 + close),
        "combined_score": 0.0 if close else len(centres) / TARGET,
    }
