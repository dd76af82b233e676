"""How well a formula fits data, where they were given and beyond; errors are raw, lower is better."""

import importlib.util
import math

INSIDE = [(x / 4, y / 4) for x in range(-4, 5) for y in range(-4, 5)]
BEYOND = [(x / 2, y / 2) for x in (-4, -3, 3, 4) for y in (-4, -3, 3, 4)]


def load(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


def truth(x, y):
    return x * x * math.cos(y) + 0.5 * y


def error(model, places):
    gaps = [float(model(x, y)) - truth(x, y) for x, y in places]
    return math.sqrt(sum(gap * gap for gap in gaps) / len(gaps))


def evaluate(program_path):
    """Root mean square errors, and a score made of them."""
    model = load(program_path).model
    inside, beyond = error(model, INSIDE), error(model, BEYOND)
    worst = max(INSIDE, key=lambda place: abs(model(*place) - truth(*place)))
    return {
        "error_inside": inside,
        "error_beyond": beyond,
        "combined_score": 0.7 / (1 + inside) + 0.3 / (1 + beyond),
        "artifacts": {"worst place": f"x, y = {worst}: {model(*worst):.3f} instead of {truth(*worst):.3f}"},
    }
