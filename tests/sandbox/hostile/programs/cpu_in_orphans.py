import os
import time


def attack(context):
    """Grandchildren that nobody waits for each use less than the limit, together more."""
    read_end, write_end = os.pipe()
    for _ in range(4):
        if os.fork() == 0:
            if os.fork() == 0:
                while time.process_time() < 0.35:
                    pass
                os.write(write_end, b"x")
            os._exit(0)
        os.wait()
    done = b""
    while len(done) < 4:
        done += os.read(read_end, 4)
    return "breached"
