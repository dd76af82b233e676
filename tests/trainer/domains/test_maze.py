"""The maze: exact rewards by hand, properties of random mazes, formats that read back, and a warm-up that is learnable."""

from __future__ import annotations

import random
from collections import deque
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evolve.chain import ChainFormat, parse_chain
from evolve.randomness import generator
from trainer.domains import make_domain
from trainer.domains.base import DomainError
from trainer.domains.maze.board import Cell, neighbours
from trainer.domains.maze.domain import MazeDomain, MazeOptions
from trainer.domains.maze.generator import DIAMOND, GOLD, LAVA, WALL, Maze, held_out, max_budget, random_maze
from trainer.domains.maze.language import compact_prompt, route_text, words
from trainer.domains.maze.planner import distinct_routes

BY_HAND = Maze(("S.G", "#LG", "D.E"), budget=6)
"""Gold at c0 and c1, lava at b1, a diamond at a2; e.g. b0 c0 c1 c2 collects all gold in four moves."""


def domain(**options: object) -> MazeDomain:
    return MazeDomain(MazeOptions.model_validate({"size": 6, **options}))


@pytest.mark.parametrize(
    ("answer", "linear"),
    [
        ("b0c0c1c2", [1, 1, 0, 1]),
        ("b0b1b2c2", [1, 0, 0, 0]),
        ("b0b1b2a2b2c2", [1, 0, 1, 0]),
        ("b0c0b0c0c1c2", [1, 1, 0, 1]),  # a tile counts once
        ("b0b1c1c2", [1, 0.5, 0, 0]),
        ("a1b0c0c1c2", [1, 1, 0, 1]),  # a wall: the move is lost
        ("a1a1b0c0c1c2", [1, 1, 0, 1]),  # six moves are within the budget
        ("a1a1a1b0c0c1c2", [0, 0, 0, 0]),  # seven are not
        ("b0c0c1c2b2a2", [1, 1, 0, 1]),  # the route ends at the exit
        ("c2", [0, 0, 0, 0]),  # not next to the start: stays there
        ("b0c0c1", [0, 0, 0, 0]),
        ("", [0, 0, 0, 0]),
        ("b0 c0", [0, 0, 0, 0]),
        ("z99", [0, 0, 0, 0]),
        ("b0c0c1c2 done", [0, 0, 0, 0]),
    ],
)
def test_rewards_by_hand(answer: str, linear: list[float]) -> None:
    np.testing.assert_allclose(domain().rewards(BY_HAND, answer + "\n"), linear)


def test_squared_rewards_and_the_bonus() -> None:
    maze = Maze(("SBG", "#LG", "D.E"), budget=8)
    squared = domain(reward="squared")
    np.testing.assert_allclose(squared.rewards(maze, "b0b1c1c2"), [1, 1.5 * 0.25, 0, 0])
    np.testing.assert_allclose(squared.rewards(maze, "b0c0c1c2"), [1, 1, 0, 1])  # clamped
    np.testing.assert_allclose(domain().rewards(maze, "b0b1c1c2"), [1, 0.5, 0, 0])


async def test_the_task_scalar_is_the_mean() -> None:
    judged = await domain().judge(BY_HAND, "b0b1c1c2")
    assert judged.scalar == pytest.approx(0.375)
    assert judged.failure is None


def test_chat_answers_are_words() -> None:
    chat = domain(form="chat")
    np.testing.assert_allclose(chat.rewards(BY_HAND, "right, RIGHT down Down\n"), [1, 1, 0, 1])
    np.testing.assert_allclose(chat.rewards(BY_HAND, "nowhere"), np.zeros(4))
    assert words([(0, 1), (0, 2), (1, 2), (2, 2)], (0, 0)) == "RIGHT RIGHT DOWN DOWN"
    prompt = chat.prompt(BY_HAND, 3, None, np.array([0.5, 0.25, 0.25, 0]))
    assert isinstance(prompt, list)
    for part in ("S . G\n# L G\nD . E", "2 gold, 1 diamond, 1 lava, 0 bonus", "6 moves", "completion 0.50, gold 0.25"):
        assert part in prompt[0]["content"]


def test_the_compact_prompt() -> None:
    assert compact_prompt(BY_HAND, 2, None) == "a0Sb0.c0G\na1#b1Lc1G\na2Db2.c2E\n| 6 = 2\n"
    goal = np.array([0.31, 0.09, 0.0, 0.6])
    assert compact_prompt(BY_HAND, 1, goal).endswith("| 6 w 3 1 0 6 = 1\n")


def distance(maze: Maze, start: Cell, target: Cell, *, lava: bool) -> float:
    """Breadth-first search, independent of the generator's bit sets."""
    queue, found = deque([start]), {start: 0}
    while queue:
        cell = queue.popleft()
        for near in neighbours(cell, maze.size):
            content = maze.rows[near[0]][near[1]]
            if near not in found and content != WALL and (lava or content != LAVA):
                found[near] = found[cell] + 1
                queue.append(near)
    return found.get(target, float("inf"))


def tour(maze: Maze, stops: list[Cell], *, lava: bool = True) -> float:
    return sum(distance(maze, a, b, lava=lava) for a, b in pairwise(stops))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(5, 9), heldout=st.booleans())
def test_a_budget_allows_either_zone_but_not_both(seed: int, size: int, heldout: bool) -> None:
    maze = random_maze(generator(seed), size, heldout=heldout)
    assert held_out(maze.board.open, size) is heldout
    assert maze.budget <= max_budget(size)
    last = size - 1
    corners = {(0, 0), (0, last), (last, 0), (last, last)}
    assert {maze.start, maze.exit} < corners
    assert maze.start[0] != maze.exit[0]
    assert maze.start[1] != maze.exit[1]
    zones = [maze.places[GOLD], maze.places[DIAMOND]]
    ends = [next(cell for cell in zone if cell in corners) for zone in zones]
    for order in (ends, ends[::-1]):
        assert tour(maze, [maze.start, *order, maze.exit]) > maze.budget
    for zone in zones:
        best = min(tour(maze, [maze.start, *order, maze.exit], lava=False) for order in permutations(zone))
        assert best <= maze.budget


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), m=st.sampled_from([1, 3, 5]), form=st.sampled_from(["compact", "chat"]))
def test_warmup_routes_reach_the_exit(seed: int, m: int, form: str) -> None:
    subject = domain(form=form)
    rng = generator(seed)
    example = subject.example(rng, m)
    maze = subject.problem(generator(seed), heldout=False)
    found = parse_chain(example.completion, ChainFormat(m=m))
    assert found.duplicates == found.surplus == 0
    assert len(found.answers) >= min(m, 2)
    assert all(subject.rewards(maze, answer.text)[0] == 1 for answer in found.answers)


def test_warmup_routes_differ_and_leave_room() -> None:
    subject, scores = domain(), []
    for i in range(60):
        maze = subject.problem(generator(1, i), heldout=False)
        routes = distinct_routes(maze, 3, random.Random(i))
        assert len({tuple(route) for route in routes}) == len(routes)
        scores += [subject.rewards(maze, route_text(route)).mean() for route in routes]
    assert 0.5 < np.mean(scores) < 0.75


def test_tokens_read_back_and_fit() -> None:
    subject = domain()
    tokenizer = subject.build_tokenizer()
    rng = generator(2)
    for i in range(50):
        m = 1 + 2 * (i % 2)
        example = subject.example(rng, m)
        for text in (example.prompt, example.completion):
            ids = tokenizer(text)["input_ids"]
            assert tokenizer.unk_token_id not in ids
            assert tokenizer.decode(ids) == text
        assert len(tokenizer(example.completion)["input_ids"]) < subject.prompt_format(m).max_tokens


def test_the_split_ignores_rotations_and_reflections() -> None:
    maze = random_maze(generator(3), 6, heldout=True)
    opened = np.array([[content != WALL for content in row] for row in maze.rows])
    for side in (opened, opened.T):
        for turns in range(4):
            cells = np.argwhere(np.rot90(side, turns)).tolist()
            assert held_out(sum(maze.board.bit((r, c)) for r, c in cells), 6)


def test_problems_depend_on_the_generator_alone() -> None:
    assert random_maze(generator(4), 9, heldout=False) == random_maze(generator(4), 9, heldout=False)
    assert random_maze(generator(4), 9, heldout=False) != random_maze(generator(5), 9, heldout=False)


def test_what_the_maze_cannot_do_is_said() -> None:
    with pytest.raises(DomainError, match=r"maze.*size.*3"):
        make_domain("maze", {"size": 3})
    with pytest.raises(DomainError, match="did you mean 'reward'"):
        make_domain("maze", {"rewards": "linear"})
    with pytest.raises(DomainError, match="pretrained"):
        make_domain("maze", {"form": "chat"}).build_tokenizer()
    with pytest.raises(DomainError, match="mutation_share"):
        domain().prompt(BY_HAND, 1, "b0")
    with pytest.raises(DomainError, match="did you mean 'maze'"):
        make_domain("mase")
