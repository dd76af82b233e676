import os
import sys


def attack(context):
    """A hook that cannot be removed ends the process well at the next event."""
    sys.addaudithook(lambda *_: os._exit(0))
    with open("/dev/null"):
        return "wrong"
