"""In the fork of a build: run the compiler, hand out the file that it made as the answer.

What it made is bytes to this project and nothing else; it only ever runs in a jail again.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # importing it from typing would cost every jail 15 ms
if TYPE_CHECKING:
    from typing import Any


def run_test(job: dict[str, Any], index: int, answer_fd: int) -> None:
    """Run one command, then leave the process with its exit status."""
    test = job["tests"][index]
    argv, made = test["argv"], test["made"]
    pid = os.fork()
    if pid == 0:
        try:
            os.execvp(argv[0], argv)
        finally:
            os._exit(127)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status == 0 and made:
        try:
            send(made, answer_fd)
        except OSError as error:
            sys.stderr.write(f"the compiler made no program: {error}\n")
            sys.stderr.flush()
            status = 1
    os._exit(status if status >= 0 else 128 - status)


def send(path: str, answer_fd: int) -> None:
    """Copy a file into the answer; a link is not followed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    while data := os.read(descriptor, 1 << 16):
        while data:
            data = data[os.write(answer_fd, data) :]
