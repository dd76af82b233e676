import contextlib
import fcntl
import os
import signal
import time


def attack(context):
    """Let the kernel send the signal: a pipe that kills its owner when bytes arrive."""
    for pid in (context["victim"], os.getppid()) if not context["bare"] else (context["victim"],):
        with contextlib.suppress(OSError):
            read_end, write_end = os.pipe()
            fcntl.fcntl(read_end, fcntl.F_SETOWN, pid)
            fcntl.fcntl(read_end, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(read_end, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
            os.write(write_end, b"x")
    time.sleep(0.1)
    return "stopped"
