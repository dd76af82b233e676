"""Run a whole job: as many jails as it takes, one after the other, each failure of a jail retried once."""

from __future__ import annotations

import threading

from sandbox.jail.bubblewrap import Isolation
from sandbox.jail.confinement import Confinement
from sandbox.jail.launcher import Jail, JailError, Job, Report
from sandbox.jail.slots import Slots
from sandbox.jail.uids import next_uid

ATTEMPTS = 2


class RunCancelledError(Exception):
    """The run was cancelled; it has no result."""


class JobRun:
    """One job; :meth:`results` once, in a worker thread; :meth:`cancel` from any thread."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._lock = threading.Lock()
        self._jail: Jail | None = None
        self._cancelled = False

    def results(self, isolation: Isolation | Confinement, slots: Slots) -> list[Report | str]:
        """One report per test, or the reason why the jail broke ``ATTEMPTS`` times at it.

        slots: where each jail gets its cgroup; one that cannot be made counts as a broken jail.
        Two tests in a row that break the jail give up the rest: the machine is at fault, and each costs time.
        """
        results: list[Report | str] = []
        attempts = broken = 0
        while len(results) < self._job.count:
            done = len(results)
            failure = self._one_jail(isolation, slots, results)
            if len(results) > done:
                attempts = broken = 0
            if failure is None:
                continue
            attempts += 1
            if attempts == ATTEMPTS:
                results.append(failure)
                attempts, broken = 0, broken + 1
            if broken == 2:
                results += [failure] * (self._job.count - len(results))
        return results

    def cancel(self) -> None:
        """End the jail that runs, if any; :meth:`results` raises :class:`RunCancelledError`."""
        with self._lock:
            self._cancelled = True
            if self._jail is not None:
                self._jail.kill()

    def _one_jail(self, isolation: Isolation | Confinement, slots: Slots, results: list[Report | str]) -> str | None:
        try:
            with slots.take() as group:
                jail = Jail(isolation, self._job, first=len(results), uid=next_uid(), group=group)
                with self._lock:
                    if self._cancelled:
                        raise RunCancelledError
                    self._jail = jail
                results.extend(jail.run())
        except (JailError, OSError) as failure:
            if self._cancelled:
                raise RunCancelledError from None
            return str(failure)
        return None
