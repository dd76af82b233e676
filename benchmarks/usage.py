"""What a process has used. Standard library only: peers import it under their own interpreter."""

from __future__ import annotations

import resource


def cpu_seconds() -> float:
    """CPU seconds of this process and of its descendants that have ended and been waited for."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def peak_rss_mb() -> float:
    """The most memory that this process has had resident, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
