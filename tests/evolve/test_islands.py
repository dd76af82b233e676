"""Islands and the ring of migration."""

from __future__ import annotations

from evolve.config import SearchConfig
from evolve.islands import STAGNANT, Islands
from evolve.program import IterationRecord, Program
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
    assert islands.migration(4).moves == ()
    moves = [(move.program.number, move.destination) for move in islands.migration(5).moves]
    assert moves == [(1, 1), (2, 0)]  # the seed, best of island 1, is on island 2 already


def test_one_island_or_no_count_means_no_migration() -> None:
    for config in (
        SearchConfig(islands=1, migration_interval=1),
        SearchConfig(migration_interval=1, migration_count=0),
    ):
        islands = Islands(config)
        islands.insert(program(1, [1, 0], island=0))
        assert islands.migration(1).moves == ()


def record(iteration: int, *programs: Program, island: int = 0, stagnant: tuple[int, ...] = ()) -> IterationRecord:
    return IterationRecord(
        iteration=iteration,
        island=island,
        parents=(),
        reply=None,
        programs=programs,
        rejected=(),
        evaluations=len(programs),
        best_scalar=0.0,
        solved=False,
        info={STAGNANT: list(stagnant)} if stagnant else {},
    )


def test_only_an_island_without_progress_gets_migrants() -> None:
    config = SearchConfig(islands=2, migration_trigger="stagnation", migration_interval=3, migration_count=1)
    islands = Islands(config)
    islands.seed(program(0, [0, 0, 0]))
    islands.absorb(record(3, program(3, [1, 0, 0], island=0)))
    islands.absorb(record(4, program(4, [0, 1, 1], island=1)))
    assert islands.migration(8).stagnant == ()
    migration = islands.migration(9)  # island 0 last improved in iteration 3: three turns of two islands ago
    assert migration.stagnant == (0,)
    assert [(move.program.number, move.destination) for move in migration.moves] == [(4, 0)]
    assert islands.migration(10).stagnant == (1,)
    assert islands.migration(11).stagnant == ()  # helped already


def test_help_is_remembered_from_the_records() -> None:
    config = SearchConfig(islands=2, migration_trigger="stagnation", migration_interval=3)
    islands = Islands(config)
    islands.seed(program(0, [0, 0]))
    islands.note(record(6, stagnant=(0, 1)))
    assert islands.migration(11).stagnant == ()
    assert islands.migration(12).stagnant == (0, 1)


def test_a_stagnant_island_can_start_anew() -> None:
    config = SearchConfig(
        islands=2, migration_trigger="stagnation", migration_interval=2, migration_count=1, restart_stagnant=True
    )
    islands = Islands(config)
    islands.seed(program(0, [0, 0, 0]))
    islands.absorb(record(1, program(1, [1, 0, 0], island=0)))
    islands.absorb(record(2, program(2, [1, 1, 0], island=1)))
    islands.absorb(record(5, program(7, [1, 1, 0], island=0), stagnant=(0,)))
    assert [1 in islands[0], 0 in islands[0], 7 in islands[0]] == [False, True, True]
    assert 2 in islands[1]
