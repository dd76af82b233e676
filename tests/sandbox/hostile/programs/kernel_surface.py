import ctypes
import platform

# add_key, perf_event_open, bpf, userfaultfd, io_uring_setup, mq_open
NUMBERS = {"x86_64": [248, 298, 321, 323, 425, 240], "aarch64": [217, 241, 280, 282, 425, 180]}
EPERM = 1


def attack(context):
    libc = ctypes.CDLL(None, use_errno=True)
    for number in NUMBERS[platform.machine()]:
        ctypes.set_errno(0)
        if libc.syscall(number, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != EPERM:
            return "breached"
    return "stopped"
