"""Online bin packing: the lower bound on the number of bins over the bins that a priority function uses."""

import importlib.util
import math
import random

CAPACITY = 100
KINDS = {"uniform": (20, 100), "small": (5, 50), "large": (30, 70)}


def load(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


def bins_used(priority, items):
    rooms = []
    for item in items:
        fitting = [i for i, room in enumerate(rooms) if room >= item]
        if fitting:
            chosen = max(fitting, key=lambda i: float(priority(item, rooms[i])))
            rooms[chosen] -= item
        else:
            rooms.append(CAPACITY - item)
    return len(rooms)


def evaluate(program_path):
    """The ratio for each kind of items, and their mean."""
    priority = load(program_path).priority
    ratios = {}
    for kind, (low, high) in KINDS.items():
        items = [random.Random(f"{kind}{i}").randint(low, high) for i in range(150)]
        ratios[kind] = math.ceil(sum(items) / CAPACITY) / bins_used(priority, items)
    return ratios | {"combined_score": sum(ratios.values()) / len(ratios)}
