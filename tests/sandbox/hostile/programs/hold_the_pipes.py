import os
import time


def attack(context):
    """A child keeps every pipe open, so that a reader who waits for their end waits for it."""
    if os.fork() == 0:
        time.sleep(3)
        os._exit(0)
    return "stopped"
