import os
import select
import time


def attack(context):
    """Children that each stay below the limit of one process."""
    read_end, write_end = os.pipe()
    leave_read, leave_write = os.pipe()
    children = held = ended = 0
    for _ in range(12):
        try:
            child = os.fork()
        except OSError:
            break
        if child == 0:
            take(context["piece_mb"], write_end, leave_read, leave_write)
        children += 1
    patience = time.monotonic() + 10
    while held + ended < children and time.monotonic() < patience:
        if select.select([read_end], [], [], 0.05)[0]:
            held += len(os.read(read_end, 64))
        elif os.waitpid(-1, os.WNOHANG)[0]:
            ended += 1
    return "breached" if held * context["piece_mb"] > context["bound_mb"] else "stopped"


def take(piece_mb, write_end, leave_read, leave_write):
    try:
        os.close(leave_write)
        block = bytearray(piece_mb << 20)
        block[:: 1 << 12] = b"x" * len(block[:: 1 << 12])
        os.write(write_end, b"+")
        os.read(leave_read, 1)
    finally:
        os._exit(0)
