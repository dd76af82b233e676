"""Bandits: who takes part, who wins, and what costs and forgetting do."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolve.bandit import Bandit
from evolve.config import BanditConfig
from evolve.randomness import generator


def play(
    config: BanditConfig, chances: dict[str, float], *, costs: dict[str, float], rounds: int = 400
) -> Counter[str]:
    """How often each arm was chosen in the second half."""
    bandit, picks = Bandit(dict.fromkeys(chances, 1.0), config), Counter[str]()
    for t in range(rounds):
        name = bandit.choose(generator(t, "choice"))
        bandit.observe(name, float(generator(t, "gain").random() < chances[name]), costs[name])
        picks[name] += t >= rounds // 2
    return picks


@pytest.mark.parametrize("policy", ["ucb", "thompson"])
def test_the_better_arm_is_used_more(policy: Any) -> None:
    picks = play(BanditConfig(policy=policy, discount=1.0), {"a": 0.1, "b": 0.6}, costs={"a": 1, "b": 1})
    assert picks["b"] > 160


@pytest.mark.parametrize("policy", ["ucb", "thompson"])
def test_among_equals_the_cheaper_one_wins(policy: Any) -> None:
    costs = {"a": 10.0, "b": 1.0}
    config = BanditConfig(policy=policy, discount=1.0, cost_weight=1.0)
    assert play(config, {"a": 0.5, "b": 0.5}, costs=costs)["b"] > 160
    blind = play(config.model_copy(update={"cost_weight": 0.0}), {"a": 0.5, "b": 0.5}, costs=costs)
    assert blind["a"] > 20


def test_fixed_draws_by_weight_and_a_lone_arm_needs_no_draw() -> None:
    bandit = Bandit({"a": 3.0, "b": 1.0, "off": 0.0}, BanditConfig())
    picks = Counter(bandit.choose(generator(t)) for t in range(1000))
    assert set(picks) == {"a", "b"}
    assert picks["a"] == pytest.approx(750, abs=60)
    rng = generator("untouched")
    assert Bandit({"a": 1.0}, BanditConfig()).choose(rng) == "a"
    assert rng.random() == generator("untouched").random()
    assert bandit.choose(generator(0), among=("b",)) == "b"
    with pytest.raises(ValueError, match="none of"):
        bandit.choose(generator(0), among=("off",))


def test_every_arm_is_tried_and_old_luck_is_forgotten() -> None:
    bandit = Bandit({"a": 1.0, "b": 1.0}, BanditConfig(policy="ucb"))
    bandit.observe("a", 1.0, 0.0)
    assert bandit.choose(generator(0)) == "b"

    def best_after(discount: float) -> str:
        greedy = BanditConfig(policy="ucb", exploration=0.0, discount=discount)
        bandit = Bandit({"a": 1.0, "b": 1.0}, greedy)
        for name, gain in (("b", 0.3), ("a", 1.0), ("a", 1.0), ("a", 0.0), ("a", 0.0), ("nobody", 1.0)):
            bandit.observe(name, gain, 1.0)
        return bandit.choose(generator(0))

    assert best_after(0.5) == "b"  # the mean of a is (1/8 + 1/4) / (1 + 1/2 + 1/4 + 1/8) = 0.2
    assert best_after(1.0) == "a"  # and 0.5 where nothing is forgotten


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1), st.floats(0, 1e6)), max_size=30),
    st.sampled_from(["fixed", "ucb", "thompson"]),
    st.floats(0, 4),
    st.integers(0, 100),
)
def test_any_history_gives_a_choice(
    history: list[tuple[str, float, float]], policy: Any, cost_weight: float, key: int
) -> None:
    def chosen() -> str:
        bandit = Bandit({"a": 1.0, "b": 2.0, "c": 0.5}, BanditConfig(policy=policy, cost_weight=cost_weight))
        for name, gain, cost in history:
            bandit.observe(name, gain, cost)
        return bandit.choose(generator(key))

    assert chosen() in "abc"
    assert chosen() == chosen()
