import ctypes
import os
import time

PTRACE_ATTACH = 16


def attack(context):
    libc = ctypes.CDLL(None, use_errno=True)
    child = os.fork()
    if child == 0:
        time.sleep(2)
        os._exit(0)
    caught = [pid for pid in (child, os.getppid()) if pid != os.getppid() or not context["bare"]]
    return "breached" if any(libc.ptrace(PTRACE_ATTACH, pid, 0, 0) == 0 for pid in caught) else "stopped"
