"""A sandbox for each test that wants one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from sandbox import Sandbox


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(concurrency=2) as ready:
        yield ready
