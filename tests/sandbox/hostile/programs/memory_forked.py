import os
import time


def attack(context):
    """Children that each stay below the limit of one process."""
    read_end, write_end = os.pipe()
    for _ in range(12):
        try:
            child = os.fork()
        except OSError:
            break
        if child == 0:
            try:
                block = bytearray(context["piece_mb"] << 20)
                block[:: 1 << 12] = b"x" * len(block[:: 1 << 12])
                os.write(write_end, b"+")
                time.sleep(1)
            finally:
                os._exit(0)
    time.sleep(0.7)
    os.write(write_end, b".")
    held = os.read(read_end, 64).count(b"+")
    return "breached" if held * context["piece_mb"] > context["bound_mb"] else "stopped"
