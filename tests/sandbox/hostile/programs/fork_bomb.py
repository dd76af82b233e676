import os
import time


def attack(context):
    for _ in range(100):
        try:
            if os.fork() == 0:
                time.sleep(3)
                os._exit(0)
        except OSError:
            return "stopped"
    return "breached"
