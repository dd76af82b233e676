"""Shared by all packages: one tiny checkpoint, one vLLM server, and the minutes that each package took."""

from __future__ import annotations

import asyncio
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.model_server import ModelServer
from tests.tiny_checkpoint import write_tiny_checkpoint

_seconds: dict[str, float] = defaultdict(float)


@pytest.hookimpl
def pytest_configure() -> None:
    """Let Ctrl-C reach this process and its children, whose tests need it: a shell's background jobs ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint folder with ``vpo.json``: random weights, completions, chains of three answers."""
    return write_tiny_checkpoint(tmp_path_factory.mktemp("checkpoints") / "tiny")


@pytest.fixture(scope="session")
def model_server(tiny_checkpoint: Path) -> Iterator[ModelServer]:
    """A running vLLM server for ``tiny_checkpoint``, the same one for the whole session."""
    with asyncio.Runner() as runner:
        server = ModelServer(tiny_checkpoint)
        runner.run(server.start())
        try:
            yield server
        finally:
            runner.run(server.stop())


@pytest.hookimpl
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    parts = Path(report.location[0]).parts
    package = parts[1] if len(parts) > 2 else "(top level)"
    _seconds[package] += report.duration


@pytest.hookimpl
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _seconds:
        return
    terminalreporter.section("minutes per package")
    for package, seconds in sorted(_seconds.items()):
        terminalreporter.write_line(f"{package:<14}{seconds / 60:6.2f}")
    terminalreporter.write_line(f"{'all':<14}{sum(_seconds.values()) / 60:6.2f}")
