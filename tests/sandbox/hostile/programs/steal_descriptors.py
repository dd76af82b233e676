import ctypes
import os
import platform

PIDFD_GETFD = {"x86_64": 438, "aarch64": 438}


def attack(context):
    """Copies of another process's open files."""
    libc = ctypes.CDLL(None, use_errno=True)
    target = context["victim"] if context["bare"] else os.getppid()
    try:
        process = os.pidfd_open(target)
    except OSError:
        return "stopped"
    for descriptor in range(64):
        if libc.syscall(PIDFD_GETFD[platform.machine()], process, descriptor, 0) >= 0:
            return "breached"
    return "stopped"
