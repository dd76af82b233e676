"""Smallest distance over largest among 16 points of the plane, squared, relative to the best known 1 / 12.889."""

import importlib.util
import math
from itertools import combinations

N = 16
TARGET = 1 / 12.889


def load(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


def evaluate(program_path):
    """The squared ratio as it is, and the score relative to the target."""
    points = [tuple(map(float, point)) for point in load(program_path).points(N)]
    if len(points) != N or not all(math.isfinite(value) for point in points for value in point):
        raise ValueError(f"{N} finite points are needed")
    distances = [math.dist(a, b) for a, b in combinations(points, 2)]
    ratio = (min(distances) / max(distances)) ** 2
    return {"squared_ratio": ratio, "distinct": float(min(distances) > 0), "combined_score": ratio / TARGET}
