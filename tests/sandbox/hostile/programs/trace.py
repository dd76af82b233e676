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
    targets = [child] if context["bare"] else [child, os.getppid()]
    caught = [pid for pid in targets if libc.ptrace(PTRACE_ATTACH, pid, 0, 0) == 0]
    os.kill(child, 9)
    return "breached" if caught else "stopped"
