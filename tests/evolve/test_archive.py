"""The archive: niches, bounds, and what the matrix says about its members."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolve.archive import NicheArchive, make_archive
from evolve.config import ArchiveConfig, FeatureConfig
from evolve.members import Pool, rank
from evolve.program import Program
from evolve.randomness import generator
from evolve.voronoi import centroids
from tests.evolve.builders import program

LENGTH = FeatureConfig(name="length")
ONLY_REWARDS = ArchiveConfig(features=())


def seen(archive: NicheArchive) -> Pool:
    """All members of an archive, by row."""
    return archive.pool(len(archive), 0, generator("unused"))


def test_a_cell_keeps_its_best_program() -> None:
    archive = make_archive(ArchiveConfig(features=(FeatureConfig(name="length", bins=1),), capacity=1))
    assert archive.insert(program(0, [0, 0, 0]))
    assert archive.insert(program(1, [1, 1, 0]))
    assert 0 not in archive
    assert not archive.insert(program(2, [1, 0, 0]))
    assert [member.number for member in archive.members] == [1]


def test_every_pass_pattern_keeps_its_elite_however_low() -> None:
    archive = make_archive(ONLY_REWARDS)
    for number, reward in enumerate([[1, 1, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]]):
        assert archive.insert(program(number, reward))
    assert {member.number for member in archive.members} == {0, 1, 2}


def test_equal_programs_lose_to_the_shorter_and_then_the_older() -> None:
    archive = make_archive(ONLY_REWARDS)
    archive.insert(program(0, [1, 0], source="x = 1234"))
    assert not archive.insert(program(1, [1, 0], source="y = 1234"))
    assert archive.insert(program(2, [1, 0], source="y = 1"))
    assert [member.number for member in archive.members] == [2]


def test_what_could_not_be_judged_is_never_a_member() -> None:
    archive = make_archive(ArchiveConfig())
    broken = program(0, [1, 1], infrastructure="the sandbox is gone")
    assert not archive.accepts(broken)
    assert not archive.insert(broken)
    assert len(archive) == 0


def test_a_full_archive_gives_up_its_worst_but_not_a_lone_specialist() -> None:
    archive = make_archive(ArchiveConfig(features=(), capacity=3))
    for number, reward in enumerate([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 0]]):
        archive.insert(program(number, reward))
    assert len(archive) == 3
    assert 0 in archive
    assert 1 in archive  # alone passes the last test, with the lowest mean but one
    assert 4 not in archive


def test_components_that_come_later_get_columns_of_their_own() -> None:
    archive = make_archive(ONLY_REWARDS)
    archive.insert(program(0, [0.5], components=["speed"]))
    archive.insert(program(1, [0.25, 1.0], components=["size", "speed"]))
    pool = seen(archive)
    rows = {pool[position].number: pool.rewards[position].tolist() for position in range(len(pool))}
    assert rows == {0: [0.5, 0.0], 1: [1.0, 0.25]}
    assert not archive.insert(program(2, [0.5], components=["speed"], source="x = 'longer than the first one, by far'"))


def test_accepts_foretells_insert_and_changes_nothing() -> None:
    archive = make_archive(ONLY_REWARDS)
    archive.insert(program(0, [1, 0]))
    stranger = program(1, [1, 0], components=["other", "t1"])
    assert archive.accepts(stranger)
    assert seen(archive).rewards.shape == (1, 2)
    assert not archive.accepts(program(2, [1, 0]))


@pytest.mark.parametrize(
    ("feature", "candidate", "cell"),
    [
        (LENGTH, program(0, [1], source=""), 0),
        (LENGTH, program(0, [1], source="x" * 100), 2),
        (LENGTH, program(0, [1], source="x" * 10**6), 11),
        (FeatureConfig(name="passed", bins=4), program(0, [1, 1, 0, 0]), 2),
        (FeatureConfig(name="passed", bins=4), program(0, [1, 1, 1, 1]), 3),
        (FeatureConfig(name="scalar", bins=10), program(0, [0.55]), 5),
        (FeatureConfig(name="metric:ms", bins=10, low=0, high=50), program(0, [1], metrics={"ms": 20.0}), 4),
        (FeatureConfig(name="metric:ms", bins=10, low=0, high=50), program(0, [1], metrics={"ms": math.inf}), 9),
        (FeatureConfig(name="metric:ms", bins=10, low=0, high=50), program(0, [1], metrics={"ms": -math.inf}), 0),
        (FeatureConfig(name="metric:ms", bins=10, low=0, high=50), program(0, [1], metrics={"ms": math.nan}), 0),
        (FeatureConfig(name="metric:ms", bins=10, low=0, high=50), program(0, [1]), 0),
    ],
)
def test_features_fall_into_cells(feature: FeatureConfig, candidate: Program, cell: int) -> None:
    assert make_archive(ArchiveConfig(features=(feature,))).cell(candidate) == (cell,)


def test_best_is_sorted_and_bounded() -> None:
    archive = make_archive(ONLY_REWARDS)
    for number, reward in enumerate([[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 1], [1, 0, 1]]):
        archive.insert(program(number, reward))
    assert [member.number for member in archive.best(3)] == [3, 1, 4]
    assert [member.number for member in archive.best(99)] == [3, 1, 4, 0, 2]
    assert archive.best(0) == []
    assert make_archive(ONLY_REWARDS).best(2) == []


vectors = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=3, max_size=3)
streams = st.lists(st.tuples(vectors, st.integers(0, 300)), max_size=60)


def _fill(stream: list[tuple[list[float], int]], config: ArchiveConfig) -> tuple[NicheArchive, list[Program]]:
    archive, programs = make_archive(config), []
    for number, (reward, length) in enumerate(stream):
        programs.append(program(number, reward, source=f"x = {number}\n" + "#" * length))
        archive.insert(programs[-1])
    return archive, programs


@given(streams)
def test_niches_hold_exactly_the_elites(stream: list[tuple[list[float], int]]) -> None:
    archive, programs = _fill(stream, ArchiveConfig())
    elites: dict[object, Program] = {}
    for candidate in programs:
        for niche in (archive.cell(candidate), candidate.evaluation.reward):
            held = elites.get(niche)
            rank = (candidate.evaluation.scalar, -len(candidate.source))
            if held is None or rank > (held.evaluation.scalar, -len(held.source)):
                elites[niche] = candidate
    assert {member.number for member in archive.members} == {elite.number for elite in elites.values()}


@given(streams, st.integers(1, 5))
def test_the_matrix_matches_the_members_and_the_bounds_hold(
    stream: list[tuple[list[float], int]], capacity: int
) -> None:
    config = ArchiveConfig(features=(FeatureConfig(name="passed", bins=2),), capacity=capacity)
    archive, programs = _fill(stream, config)
    assert len(archive) <= capacity + 2
    assert bool(len(archive)) == bool(programs)
    pool = seen(archive)
    for row, member in enumerate(archive.members):
        assert tuple(pool.rewards[row]) == member.evaluation.reward
        assert pool.scalars[row] == member.evaluation.scalar
        assert member.number in archive
    if programs:  # the best program of all is never lost
        assert pool.scalars.max() == max(candidate.evaluation.scalar for candidate in programs)


def test_size_does_not_grow_with_the_stream() -> None:
    archive = make_archive(ArchiveConfig(capacity=32))
    rng = np.random.default_rng(0)
    for number in range(3000):
        archive.insert(program(number, rng.random(8).tolist()))
    assert len(archive) <= 32 + 12 * 12


@pytest.mark.parametrize(
    ("feature", "candidate", "cell"),
    [
        (FeatureConfig(name="complexity"), program(0, [1], source="x = 1\n"), 0),
        (FeatureConfig(name="complexity"), program(0, [1], source="x = [" + "1, " * 100 + "]\n"), 3),
        (FeatureConfig(name="complexity"), program(0, [1], source="fn main() {" + "let x = 1; " * 100 + "}"), 5),
        (FeatureConfig(name="diversity", bins=4), program(1, [1, 1, 0, 0]), 2),
        (FeatureConfig(name="diversity", bins=4), program(1, [0.25], components=["other"]), 0),
    ],
)
def test_complexity_and_difference_from_the_seed_program(feature: FeatureConfig, candidate: Program, cell: int) -> None:
    archive = make_archive(ArchiveConfig(features=(feature,)))
    archive.insert(program(0, [0, 0, 0, 0], source=""))
    assert archive.cell(candidate) == (cell,)


def test_voronoi_cells_hold_their_best() -> None:
    archive = make_archive(ArchiveConfig(kind="cvt", centroids=4, capacity=1))
    for number in range(200):
        archive.insert(program(number, [number % 2, (number // 2) % 2], source="x" * (16 + 3 * number)))
    assert 1 < len(archive) <= 5
    cells = {archive.cell(member) for member in archive.members}
    assert len(cells) >= len(archive) - 1  # one of them may hold the only reward niche


def test_voronoi_cells_of_test_patterns() -> None:
    archive = make_archive(ArchiveConfig(kind="cvt", features=(), centroids=16))
    for number in range(64):
        archive.insert(program(number, [float(number >> bit & 1) for bit in range(6)]))
    assert len({archive.cell(member) for member in archive.members}) > 8
    later = program(99, [1.0], components=["later"])
    assert archive.cell(later) == archive.cell(program(98, [0.0]))  # components that come later do not move it
    assert centroids(16, 6, "rewards") is centroids(16, 6, "rewards")


def test_an_elite_archive_keeps_the_best_whatever_they_do() -> None:
    archive = make_archive(ArchiveConfig(kind="elite", capacity=2))
    for number, reward in enumerate([[0, 0, 1], [1, 1, 0], [1, 1, 1], [1, 1, 0], [0, 0, 0]]):
        archive.insert(program(number, reward))
    assert [member.number for member in archive.best(9)] == [2, 1]
    assert archive.cell(program(9, [1])) == ()


def test_what_behaves_like_a_better_member_is_no_news() -> None:
    archive = make_archive(ArchiveConfig(novelty=0.3, features=(LENGTH,)))
    archive.insert(program(0, [1, 1, 0, 0]))
    near, far, better = program(1, [1, 0, 0, 0], source="x" * 900), program(2, [0, 0, 1, 0]), program(3, [1, 1, 1, 0])
    assert not archive.accepts(near)
    assert not archive.insert(near)
    assert archive.insert(far)
    assert archive.insert(better)
    assert archive.insert(program(4, [1.0], components=["another"]))


def test_the_members_are_found_by_number_and_sampled_with_the_best() -> None:
    archive = make_archive(ArchiveConfig(capacity=1000, features=()))
    rng = np.random.default_rng(0)
    for number in range(300):
        archive.insert(program(number, rng.random(4).tolist()))
    assert archive[17].number == 17
    assert len(archive.pool(300, 5, generator(0, "pool"))) == len(archive) > 290
    pool = archive.pool(40, 5, generator(0, "pool"))
    numbers = [pool[position].number for position in range(len(pool))]
    assert len(set(numbers)) == len(pool) <= 45
    assert {member.number for member in archive.best(5)} <= set(numbers)
    for position, number in enumerate(numbers):
        assert pool.scalars[position] == archive[number].evaluation.scalar
        assert tuple(pool.rewards[position]) == archive[number].evaluation.reward
    assert len(archive.pool(40, 5, generator(1, "pool"))) > 20


@given(streams, st.integers(1, 6), st.sampled_from(["grid", "cvt", "elite"]))
def test_whatever_comes_the_books_of_an_archive_balance(
    stream: list[tuple[list[float], int]], capacity: int, kind: str
) -> None:
    config = ArchiveConfig.model_validate({"kind": kind, "capacity": capacity, "centroids": 4})
    archive, programs = _fill(stream, config)
    again, _ = _fill(stream, config)
    assert [m.number for m in again.members] == [m.number for m in archive.members]
    for candidate in programs:  # inserting the same again changes nothing
        assert archive.insert(candidate) == (candidate.number in archive)
    order = [member.number for member in archive.best(len(archive))]
    ranks = [rank(archive[number]) for number in order]
    assert ranks == sorted(ranks)
    assert sorted(order) == sorted(member.number for member in archive.members)
    patterns = archive._patterns
    held = [archive._members.row(number) for number in patterns._key_of]
    assert len(held) <= capacity
    if held:
        levels = seen(archive).levels[held]
        width = len(patterns._top)
        assert (patterns._top == levels[:, :width].max(axis=0)).all()
        assert (patterns._holders == (levels[:, :width] == patterns._top).sum(axis=0)).all()
