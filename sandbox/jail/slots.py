"""Slots: as many as jails may be alive at once; each has a cgroup of its own where there are cgroups."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sandbox.jail.cgroups import Group, Place, sweep


class Slots:
    """The groups of one sandbox, made when they are first needed and removed with :meth:`close` or at the exit."""

    def __init__(self, place: Place | None) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._groups: list[Group] = []
        self._free: list[Group] = []
        self._close = weakref.finalize(self, _remove_all, self._groups)
        if place is not None:
            sweep(place)

    @contextmanager
    def take(self) -> Iterator[Group | None]:
        """A group that no other jail has meanwhile; ``None`` where there are no cgroups."""
        if self._place is None:
            yield None
            return
        with self._lock:
            if self._free:
                group = self._free.pop()
            else:
                group = Group(self._place)
                self._groups.append(group)
        try:
            yield group
        finally:
            with self._lock:
                self._free.append(group)

    @property
    def peak_bytes(self) -> int:
        """The most memory that any jail in these slots ever had, everything together; 0 where nobody counts."""
        with self._lock:
            return max((group.peak_bytes for group in self._groups), default=0)

    def close(self) -> None:
        """Remove the groups; nothing may be running in them."""
        self._close()


def _remove_all(groups: list[Group]) -> None:
    while groups:
        with suppress(OSError):  # the next start sweeps what cannot be removed now
            groups.pop().remove()
