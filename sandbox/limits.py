"""What one candidate program may use."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Bounds on one test of a candidate (``wall_s``, ``cpu_s``, ``output_kb``) and on its jail (the rest).

    All values must be positive; a :class:`ValueError` names the field otherwise.

    wall_s: wall-clock seconds per test.
    cpu_s: CPU seconds per test.
    memory_mb: address space of one process, MiB (Python itself takes 15). In tier full it bounds the whole jail,
    scratch space included; in tier jail all together may use ``processes`` times that.
    processes: processes and threads alive at once inside the jail.
    output_kb: bytes kept of standard output and of standard error of one test, KiB; more is an output-limit verdict.
    tmpfs_mb: writable scratch space, MiB.
    """

    wall_s: float = 5.0
    cpu_s: float = 5.0
    memory_mb: int = 256
    processes: int = 32
    output_kb: int = 256
    tmpfs_mb: int = 32

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ValueError(f"limits.{field.name} must be positive, not {value!r}")
