"""Islands and the ring of migration."""

from __future__ import annotations

from evolve.config import SearchConfig
from evolve.islands import Islands
from tests.evolve.builders import program


def test_islands_take_turns() -> None:
    islands = Islands(SearchConfig(islands=3))
    assert [islands.of_iteration(t) for t in range(1, 8)] == [0, 1, 2, 0, 1, 2, 0]


def test_the_seed_is_on_every_island_and_a_child_on_its_own() -> None:
    islands = Islands(SearchConfig(islands=3))
    islands.seed(program(0, [0, 0]))
    assert [len(islands[i]) for i in range(3)] == [1, 1, 1]
    islands.insert(program(1, [1, 0], island=2))
    assert [1 in islands[i] for i in range(3)] == [False, False, True]


def test_the_best_go_to_the_next_island_where_they_find_a_niche() -> None:
    islands = Islands(SearchConfig(islands=3, migration_interval=5, migration_count=1))
    islands.seed(program(0, [0, 0]))
    islands.insert(program(1, [1, 0], island=0))
    islands.insert(program(2, [0, 1], island=2))
    assert islands.migrants(4) == ()
    moves = [(move.program.number, move.destination) for move in islands.migrants(5)]
    assert moves == [(1, 1), (2, 0)]  # the seed, best of island 1, is on island 2 already


def test_one_island_or_no_count_means_no_migration() -> None:
    for config in (
        SearchConfig(islands=1, migration_interval=1),
        SearchConfig(migration_interval=1, migration_count=0),
    ):
        islands = Islands(config)
        islands.insert(program(1, [1, 0], island=0))
        assert islands.migrants(1) == ()
