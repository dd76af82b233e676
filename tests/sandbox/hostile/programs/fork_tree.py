import os
import time


def attack(context):
    """Every process forks: 128 of them after seven rounds."""
    read_end, write_end = os.pipe()
    first = os.getpid()
    for _ in range(7):
        try:
            os.fork()
        except OSError:
            os.write(write_end, b"refused ")
    if os.getpid() != first:
        time.sleep(1)
        os._exit(0)
    time.sleep(0.5)
    os.write(write_end, b".")
    return "stopped" if b"refused" in os.read(read_end, 65536) else "breached"
