"""docs/domains.md: every domain, option and component appears, and its examples are true."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from evolve.chain import ChainFormat, parse_chain
from evolve.randomness import generator
from tests.trainer.domains.test_maze import BY_HAND
from trainer.domains import DOMAINS, make_domain
from trainer.domains.maze.domain import MazeDomain, MazeOptions

PAGE = (Path(__file__).parents[3] / "docs" / "domains.md").read_text()


@pytest.mark.parametrize("name", sorted(DOMAINS))
def test_every_domain_and_option_is_described(name: str) -> None:
    assert f"| `{name}` |" in PAGE
    for option in DOMAINS[name][0].model_fields:
        assert re.search(rf"\|[^|]*`{option}`", PAGE), option


@pytest.mark.parametrize("name", ["maze", "musique", "eureqa", "toolrl", "collinear"])
def test_components_are_the_described_ones(name: str) -> None:
    domain = make_domain(name)
    components = domain.components(domain.problem(generator(0), heldout=False))
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))
    named = re.findall(r"`(\w+)`", row)[1:]
    assert (named[0], named[-1]) == (components[0], components[-1])
    assert set(named) <= set(components)


def test_the_examples_are_true() -> None:
    blocks = re.findall(r"```(\w*)\n(.*?)```", PAGE, re.DOTALL)
    first = yaml.safe_load(next(text for kind, text in blocks if kind == "yaml"))
    assert isinstance(make_domain(first["domain"], first["options"]), MazeDomain)
    shown = next(text for kind, text in blocks if not kind)
    maze = MazeDomain(MazeOptions())
    prompt, completion = shown.split("<answer>")
    assert prompt == maze.prompt(BY_HAND, 1)
    answer = parse_chain(f"<answer>{completion}", ChainFormat()).answers[0]
    np.testing.assert_allclose(maze.rewards(BY_HAND, answer.text), [1, 1, 0, 1])


def test_the_largest_6x6_texts_fit_as_described() -> None:
    domain = MazeDomain(MazeOptions(size=6))
    tokenizer = domain.build_tokenizer()
    goal = np.full(4, 0.25)
    prompts = [domain.prompt(domain.problem(generator(i), heldout=False), 3, None, goal) for i in range(20)]
    assert max(len(tokenizer(prompt)["input_ids"]) for prompt in prompts) == 52
    assert domain.prompt_format(3).max_tokens == 79
