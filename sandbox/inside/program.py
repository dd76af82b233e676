"""In the fork of one test of a program that is no Python: become that program."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the signal module would import enum
import os
import sys

TYPE_CHECKING = False  # importing it from typing would cost every jail 15 ms
if TYPE_CHECKING:
    from typing import Any


def run_test(job: dict[str, Any], index: int, answer_fd: int) -> None:
    """Execute the program; the answer pipe closes with that, so what it prints and its exit status are all it says."""
    argv = job["tests"][index]["argv"]
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # Python ignores them, and programs would inherit that
        _signal.signal(number, _signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"the program cannot be started: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(127)
