"""Smallest triangle among 7 points of the unit square, relative to the best known 0.0838; an async evaluator."""

import importlib.util
from itertools import combinations

N = 7
TARGET = 0.0838590090


def load(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


def area(a, b, c):
    return abs((b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1])) / 2


async def evaluate(program_path):
    """The smallest area and the mean of the three smallest, both relative to the target."""
    points = [tuple(map(float, point)) for point in load(program_path).points(N)]
    if len(points) != N or not all(0 <= value <= 1 for point in points for value in point):
        raise ValueError(f"{N} points of the unit square are needed")
    areas = sorted(area(*three) for three in combinations(points, 3))
    return {
        "smallest": areas[0],
        "three_smallest": sum(areas[:3]) / 3 / TARGET,
        "combined_score": areas[0] / TARGET,
    }
