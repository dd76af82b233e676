"""docs/estimators.md names every estimator, and its examples run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import TypeAdapter

from trainer.estimators import ESTIMATORS
from trainer.estimators.config import EstimatorConfig, VpoPlusConfig

TEXT = (Path(__file__).parents[3] / "docs" / "estimators.md").read_text(encoding="utf-8")


def test_every_estimator_has_a_row() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE)) == set(ESTIMATORS)
    for option in VpoPlusConfig.model_fields:
        assert option in TEXT, option


def test_the_example_runs() -> None:
    names: dict[str, Any] = {}
    exec(re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)[1], names)
    assert np.abs(names["advantages"]).max() > 0
    assert names["advantages"].shape == (2, 8, 3)
    settings = yaml.safe_load(re.search(r"```yaml\n(.*?)```", TEXT, re.DOTALL)[1])["train"]["estimator"]
    assert TypeAdapter(EstimatorConfig).validate_python(settings).name == "vpo_plus"


def test_what_leaves_every_part_out_is_accepted() -> None:
    options = yaml.safe_load(re.search(r"`(\{sobol: false.*?\})`", TEXT)[1])
    assert VpoPlusConfig(**options).gate is None
