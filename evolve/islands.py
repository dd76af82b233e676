"""Several archives that evolve apart and now and then exchange their best programs around a ring."""

from __future__ import annotations

from dataclasses import dataclass

from evolve.archive import Archive, make_archive
from evolve.config import SearchConfig
from evolve.program import Program


@dataclass(frozen=True, slots=True)
class Migrant:
    """A program on its way: ``program`` as it is at home, and the island that gets the copy."""

    program: Program
    destination: int


class Islands:
    """The population of one run."""

    def __init__(self, config: SearchConfig) -> None:
        self._config = config
        self._archives: list[Archive] = [make_archive(config.archive) for _ in range(config.islands)]

    def __len__(self) -> int:
        return len(self._archives)

    def __getitem__(self, island: int) -> Archive:
        return self._archives[island]

    def of_iteration(self, iteration: int) -> int:
        """The island whose turn it is in ``iteration`` (from 1): each in turn."""
        return (iteration - 1) % len(self._archives)

    def seed(self, program: Program) -> None:
        """Make the seed program a member of every island."""
        for archive in self._archives:
            archive.insert(program)

    def insert(self, program: Program) -> bool:
        """Offer a program to its own island's archive."""
        return self._archives[program.island].insert(program)

    def migrants(self, iteration: int) -> tuple[Migrant, ...]:
        """Who moves in ``iteration``: every ``migration_interval``-th, each island's best go to the next island.

        Only those that would find a niche there. Nothing is drawn at random.
        """
        config = self._config
        if len(self._archives) < 2 or iteration % config.migration_interval:
            return ()
        moves: list[Migrant] = []
        for island, archive in enumerate(self._archives):
            destination = (island + 1) % len(self._archives)
            moves.extend(
                Migrant(program, destination)
                for program in archive.best(config.migration_count)
                if self._archives[destination].accepts(program)
            )
        return tuple(moves)
