"""The search configuration refuses what it does not know."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from evolve.config import SearchConfig


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"lagg": 1}, "did you mean 'lag'"),
        ({"zzz": 1}, "unknown key .zzz.: use one of"),
        ({"selection": {"lexicasse": 1}}, "did you mean 'lexicase'"),
        ({"selection": {"lexicase": 0, "dirichlet": 0, "elite": 0, "exploit": 0, "explore": 0}}, "must be positive"),
        ({"archive": {"features": [{"name": "size"}]}}, "'size' is unknown"),
        ({"archive": {"features": [{"name": "metric:ms"}]}}, "needs low < high"),
        ({"archive": {"features": [{"name": "metric:"}]}}, "is unknown"),
        ({"archive": {"features": [{"name": "length", "low": 0}]}}, "fixed range"),
        ({"archive": {"features": [{"name": "length"}, {"name": "length"}]}}, "must differ"),
        ({"models": [{"name": "a"}, {"name": "a"}]}, "must differ in name"),
        ({"models": [{"name": "a"}], "budget": {"cost": 1.0}}, "budget.cost needs prices"),
        ({"restart_stagnant": True}, "needs migration_trigger 'stagnation'"),
        ({"operators": {"improve": 0}}, "at least one of improve, crossover"),
        ({"budget": {"token": 1}}, "did you mean 'tokens'"),
        ({"lag": 0}, "greater than or equal to 1"),
        ({"temperature": -1}, "greater than or equal to 0"),
    ],
)
def test_mistakes_are_named(body: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SearchConfig.model_validate(body)


def test_round_trip_through_json() -> None:
    config = SearchConfig(lag=4, edit="diff", islands=3)
    assert SearchConfig.model_validate_json(config.model_dump_json()) == config
