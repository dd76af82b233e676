"""How well a causal filter brings out a signal: error, false turns and lag; a cascade with a quick first stage."""

import importlib.util
import math
import random

WINDOW = 8


def load(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


def signal(kind, length):
    """Clean samples of one of three signals."""
    if kind == 0:
        return [math.sin(i / 12) for i in range(length)]
    if kind == 1:
        return [math.sin(i / 20) + 0.5 * math.sin(i / 7) for i in range(length)]
    return [0.01 * i + (1.0 if i % 60 >= 30 else 0.0) for i in range(length)]


def judge(smooth, kind, length):
    """error, turns, lag of one signal, each in [0, 1], higher is better."""
    rng = random.Random(kind)
    clean = signal(kind, length)
    noisy = [value + rng.gauss(0, 0.3) for value in clean]
    found = [float(value) for value in smooth(list(noisy), WINDOW)]
    if len(found) != length or not all(map(math.isfinite, found)):
        raise ValueError(f"the filter must return {length} finite numbers")
    if [float(v) for v in smooth(noisy[: length // 2], WINDOW)] != found[: length // 2]:
        raise ValueError("the filter looks ahead")
    error = math.sqrt(sum((a - b) ** 2 for a, b in zip(found, clean, strict=False)) / length)
    turns = sum((b - a) * (c - b) < 0 for a, b, c in zip(found, found[1:], found[2:], strict=False))

    def shifted(s):
        return sum((a - b) ** 2 for a, b in zip(found[s:], clean[: length - s], strict=True)) / (length - s)

    lag = min(range(WINDOW + 1), key=shifted)
    return 1 / (1 + 3 * error), 1 / (1 + turns / 20), 1 - lag / (WINDOW + 1)


def scores(program_path, kinds, length):
    smooth = load(program_path).smooth
    judged = [judge(smooth, kind, length) for kind in kinds]
    error, turns, lag = (sum(column) / len(judged) for column in zip(*judged, strict=False))
    return {"error": error, "turns": turns, "lag": lag, "combined_score": 0.5 * error + 0.3 * turns + 0.2 * lag}


def evaluate_stage1(program_path):
    """One short signal."""
    return scores(program_path, [0], 60)


def evaluate_stage2(program_path):
    """All of them."""
    return scores(program_path, [0, 1, 2], 300)


def evaluate(program_path):
    """What the stages come to."""
    return evaluate_stage2(program_path)
