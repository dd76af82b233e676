"""Sum of the radii of 11 circles in the unit square, relative to 1.75; 0 for a packing that breaks the rules."""

import importlib.util
import math

N = 11
TARGET = 1.75
TOLERANCE = 1e-9


def load(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


def problem_of(circles):
    """Why a packing does not count; empty where it does."""
    if len(circles) != N:
        return f"{len(circles)} circles instead of {N}"
    for i, (x, y, r) in enumerate(circles):
        if not (r >= 0 and r - TOLERANCE <= min(x, y) and max(x, y) <= 1 - r + TOLERANCE):
            return f"circle {i} at ({x:.4f}, {y:.4f}) with radius {r:.4f} leaves the square"
        for j, (u, v, s) in enumerate(circles[:i]):
            if math.dist((x, y), (u, v)) < r + s - TOLERANCE:
                return f"circles {j} and {i} overlap"
    return ""


def evaluate(program_path):
    """Metrics; the sum of radii as it is, the score relative to the target."""
    circles = [tuple(map(float, circle)) for circle in load(program_path).pack(N)]
    problem = problem_of(circles)
    total = 0.0 if problem else sum(r for _, _, r in circles)
    return {
        "sum_radii": total,
        "validity": 0.0 if problem else 1.0,
        "combined_score": total / TARGET,
        "artifacts": {"problem": problem} if problem else {},
    }
