"""Several archives that evolve apart and now and then exchange their best programs around a ring.

What moves are copies: the program stays where it is, and the copy names it as its parent. Nothing here is drawn at
random, and what an iteration sees depends only on the records taken in so far and on earlier moves.
"""

from __future__ import annotations

from dataclasses import dataclass

from evolve.archive import Archive, make_archive
from evolve.config import SearchConfig
from evolve.program import IterationRecord, Program

STAGNANT = "stagnant"
"""Key of a record's ``info``: islands that were found without progress when the iteration was asked."""


@dataclass(frozen=True, slots=True)
class Migrant:
    """A program on its way: ``program`` as it is at home, and the island that gets the copy."""

    program: Program
    destination: int


@dataclass(frozen=True, slots=True)
class Migration:
    """What moves in an iteration, and which islands were found without progress."""

    moves: tuple[Migrant, ...] = ()
    stagnant: tuple[int, ...] = ()


class Islands:
    """The population of one run."""

    def __init__(self, config: SearchConfig) -> None:
        self._config = config
        self._archives: list[Archive] = [make_archive(config.archive) for _ in range(config.islands)]
        self._seed: Program | None = None
        self._best = [0.0] * config.islands
        self._since = [0] * config.islands  # iteration of the last progress, or of the last help

    def __len__(self) -> int:
        return len(self._archives)

    def __getitem__(self, island: int) -> Archive:
        return self._archives[island]

    def of_iteration(self, iteration: int) -> int:
        """The island whose turn it is in ``iteration`` (from 1): each in turn."""
        return (iteration - 1) % len(self._archives)

    def seed(self, program: Program) -> None:
        """Make the seed program a member of every island."""
        self._seed = program
        self._best = [program.evaluation.scalar] * len(self._archives)
        for archive in self._archives:
            archive.insert(program)

    def insert(self, program: Program) -> bool:
        """Offer a program to its own island's archive."""
        if program.evaluation.scalar > self._best[program.island]:
            self._best[program.island] = program.evaluation.scalar
            self._since[program.island] = max(self._since[program.island], program.iteration)
        return self._archives[program.island].insert(program)

    def absorb(self, record: IterationRecord) -> None:
        """Take in what an iteration brought; an island that is to start anew does so first."""
        if self._config.restart_stagnant:
            for island in record.info.get(STAGNANT, ()):
                self._restart(island)
        for program in record.programs:
            self.insert(program)

    def note(self, record: IterationRecord) -> None:
        """Remember which islands were helped in an iteration that need not be taken in yet."""
        for island in record.info.get(STAGNANT, ()):
            self._since[island] = max(self._since[island], record.iteration)

    def migration(self, iteration: int) -> Migration:
        """Who moves in ``iteration``: each island's best go to the next island, where they find a niche.

        Every ``migration_interval``-th iteration from all islands or, triggered by stagnation, only to those that have
        had ``migration_interval`` turns without a better task scalar.
        """
        config, count = self._config, len(self._archives)
        if count < 2:
            return Migration()
        if config.migration_trigger == "interval":
            due = range(count) if iteration % config.migration_interval == 0 else range(0)
            return Migration(self._moves([island for island in range(count) if (island + 1) % count in due]))
        patience = config.migration_interval * count
        stagnant = tuple(island for island in range(count) if iteration - self._since[island] >= patience)
        for island in stagnant:
            self._since[island] = iteration
        return Migration(self._moves([(island - 1) % count for island in stagnant]), stagnant)

    def _moves(self, homes: list[int]) -> tuple[Migrant, ...]:
        moves: list[Migrant] = []
        for home in homes:
            destination = (home + 1) % len(self._archives)
            moves.extend(
                Migrant(program, destination)
                for program in self._archives[home].best(self._config.migration_count)
                if self._config.restart_stagnant or self._archives[destination].accepts(program)
            )
        return tuple(moves)

    def _restart(self, island: int) -> None:
        archive = make_archive(self._config.archive)
        self._best[island] = 0.0
        if self._seed is not None:
            archive.insert(self._seed)
            self._best[island] = self._seed.evaluation.scalar
        self._archives[island] = archive
