"""Look for the minimum of a bumpy function of two variables."""

# EVOLVE-BLOCK-START
import random


def search(function, bounds, evaluations):
    """The best point found with at most `evaluations` calls of `function(x, y)`.

    bounds: the lowest and highest value of each variable.
    """
    low, high = bounds
    best, best_value = None, float("inf")
    for _ in range(evaluations):
        point = (random.uniform(low, high), random.uniform(low, high))
        value = function(*point)
        if value < best_value:
            best, best_value = point, value
    return best


# EVOLVE-BLOCK-END


def run(function, bounds, evaluations, seed):
    """One run from a fixed seed; called by the evaluator."""
    random.seed(seed)
    return search(function, bounds, evaluations)
