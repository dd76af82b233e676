"""How well a program minimises f(x, y) = sin(x) cos(y) + sin(xy) + (x^2 + y^2) / 20 with few evaluations."""

import importlib.util
import math

BOUNDS = (-5.0, 5.0)
EVALUATIONS = 200
SEEDS = (1, 2, 3, 4, 5)
MINIMUM = (-1.70408, 0.67751)
MINIMUM_VALUE = -1.518686


def function(x, y):
    return math.sin(x) * math.cos(y) + math.sin(x * y) + (x * x + y * y) / 20


class Counter:
    """The function, which refuses to be called too often."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x, y):
        self.calls += 1
        if self.calls > EVALUATIONS:
            raise RuntimeError(f"more than {EVALUATIONS} evaluations")
        return function(x, y)


def evaluate(program_path):
    """Metrics in [0, 1], higher is better."""
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    gaps, distances = [], []
    for seed in SEEDS:
        x, y = program.run(Counter(), BOUNDS, EVALUATIONS, seed)
        x, y = float(x), float(y)
        if not (BOUNDS[0] <= x <= BOUNDS[1] and BOUNDS[0] <= y <= BOUNDS[1]):
            raise ValueError(f"the point ({x}, {y}) is outside of the bounds {BOUNDS}")
        gaps.append(max(0.0, function(x, y) - MINIMUM_VALUE))
        distances.append(math.dist((x, y), MINIMUM))
    value = sum(1 / (1 + 20 * gap) for gap in gaps) / len(gaps)
    distance = sum(1 / (1 + 5 * d) for d in distances) / len(distances)
    reliability = sum(gap < 0.01 for gap in gaps) / len(gaps)
    return {
        "value_score": value,
        "distance_score": distance,
        "reliability": reliability,
        "combined_score": 0.5 * value + 0.2 * distance + 0.3 * reliability,
    }
