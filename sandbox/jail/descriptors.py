"""Descriptors that are closed whatever happens, and files that exist only as one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def descriptors() -> Iterator[list[int]]:
    """A list whose descriptors are closed at the end."""
    held: list[int] = []
    try:
        yield held
    finally:
        for descriptor in held:
            os.close(descriptor)


def memory_file(data: bytes, held: list[int]) -> int:
    """A file in memory, at its start; its descriptor is put into ``held``."""
    descriptor = os.memfd_create("vpo-sandbox", os.MFD_CLOEXEC)
    held.append(descriptor)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
