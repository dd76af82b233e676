import os
import sys


def attack(context):
    """Open for writing what the next program will be run by; nothing is written."""
    opened = []
    files = [
        os.path.realpath("/proc/self/exe"),
        os.__file__,
        "/usr/bin/env",
        "/bin/sh",
        "/lib/x86_64-linux-gnu/libc.so.6",
    ]
    for path in [sys.executable, *files]:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
            opened.append(path)
        except OSError:
            pass
    try:
        folder = os.path.dirname(os.__file__)
        os.close(os.open(os.path.join(folder, "vpo_hostile.py"), os.O_CREAT | os.O_WRONLY))
        os.unlink(os.path.join(folder, "vpo_hostile.py"))
        opened.append(folder)
    except OSError:
        pass
    return "breached" if opened else "stopped"
