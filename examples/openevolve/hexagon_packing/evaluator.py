"""Side of the smallest hexagon around 7 unit hexagons that do not overlap, relative to the 2.887 of a rosette."""

import importlib.util
import math

N = 7
TARGET = 5 / math.sqrt(3)
TOLERANCE = 1e-9


def load(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


def corners(x, y, degrees):
    angles = [math.radians(degrees + 60 * k) for k in range(6)]
    return [(x + math.cos(angle), y + math.sin(angle)) for angle in angles]


def axes(degrees):
    """Normals of a hexagon's sides."""
    return [
        (math.cos(math.radians(degrees + 30 + 60 * k)), math.sin(math.radians(degrees + 30 + 60 * k))) for k in range(3)
    ]


def overlap(a, b):
    """Whether two hexagons share more than their rims: no side of either separates them."""
    for u, v in axes(a[2]) + axes(b[2]):
        first = [u * x + v * y for x, y in corners(*a)]
        second = [u * x + v * y for x, y in corners(*b)]
        if min(max(first) - min(second), max(second) - min(first)) <= TOLERANCE:
            return False
    return True


def evaluate(program_path):
    """The outer side as it is, and the score relative to the target."""
    hexagons = [tuple(map(float, hexagon)) for hexagon in load(program_path).pack(N)]
    if len(hexagons) != N:
        raise ValueError(f"{len(hexagons)} hexagons instead of {N}")
    pairs = sum(overlap(a, b) for i, a in enumerate(hexagons) for b in hexagons[:i])
    reach = max(abs(u * x + v * y) for hexagon in hexagons for x, y in corners(*hexagon) for u, v in axes(0))
    side = reach * 2 / math.sqrt(3)
    return {
        "outer_side": side,
        "validity": 1.0 / (1 + pairs),
        "combined_score": 0.0 if pairs else TARGET / side,
    }
