"""The benchmark of the estimators measures every one of them, and errors that fall with K."""

from __future__ import annotations

import pytest

from benchmarks.estimators import cpu_ms, error, random_groups
from trainer.estimators import ESTIMATORS
from trainer.estimators.config import VpoConfig, VpoPlusConfig


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_every_estimator_is_timed(name: str) -> None:
    assert cpu_ms(name, random_groups(3, prompts=2)) >= 0


def test_errors_fall_with_the_number_of_weights() -> None:
    few, many = (error(VpoPlusConfig(weights=count), 4) for count in (64, 512))
    assert many < few / 3
    assert many < error(VpoConfig(), 4) / 10
