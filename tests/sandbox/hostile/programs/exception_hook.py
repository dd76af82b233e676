import os
import sys


def attack(context):
    sys.excepthook = lambda *_: os._exit(0)
    raise RuntimeError("a failure that the hook turns into success")
