"""Programs and evaluations for tests of the population."""

from __future__ import annotations

from collections.abc import Sequence

from evolve.program import Evaluation, Program, source_digest
from sandbox.verdict import Status


def evaluation(reward: Sequence[float], *, components: Sequence[str] | None = None, **changes: object) -> Evaluation:
    """An evaluation whose tests pass where the reward is 1."""
    names = tuple(components) if components is not None else tuple(f"t{i}" for i in range(len(reward)))
    values: dict[str, object] = {
        "components": names,
        "reward": tuple(float(value) for value in reward),
        "statuses": tuple(Status.PASSED if value >= 1 else Status.WRONG for value in reward),
        "messages": tuple("" if value >= 1 else "wrong answer" for value in reward),
        "scalar": sum(reward) / len(reward),
        "solved": all(value >= 1 for value in reward),
    }
    return Evaluation(**(values | changes))  # type: ignore[arg-type]


def program(
    number: int, reward: Sequence[float], *, source: str | None = None, island: int = 0, **changes: object
) -> Program:
    """Program ``number`` with a source of its own."""
    text = source if source is not None else f"def f(x):\n    return {number}\n"
    return Program(
        number=number,
        iteration=number,
        index=0,
        island=island,
        parents=(),
        source=text,
        digest=source_digest(text),
        operator="rewrite",
        evaluation=evaluation(reward, **changes),
    )
