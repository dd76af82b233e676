"""Delivery routes: how much shorter the tours of a program are than going from stop to stop as they come."""

import importlib
import math
import random
import sys

TOWNS = 12
STOPS = 14


def towns():
    for number in range(TOWNS):
        rng = random.Random(number)
        yield [(rng.random(), rng.random()) for _ in range(STOPS)]


def length(stops, tour):
    return sum(math.dist(stops[tour[i - 1]], stops[tour[i]]) for i in range(len(tour)))


def evaluate(program_path):
    """program_path: the folder of the program, of which ``main.py`` has ``plan(stops)``."""
    sys.path.insert(0, program_path)
    plan = importlib.import_module("main").plan
    savings, valid = [], 0
    for stops in towns():
        tour = [int(stop) for stop in plan(list(stops))]
        if sorted(tour) != list(range(STOPS)):
            savings.append(0.0)
            continue
        valid += 1
        savings.append(max(0.0, 1.0 - length(stops, tour) / length(stops, range(STOPS))))
    saved = sum(savings) / TOWNS
    return {"valid": valid / TOWNS, "saved": saved, "combined_score": saved}
