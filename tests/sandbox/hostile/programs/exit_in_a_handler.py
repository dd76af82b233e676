import atexit
import os


def attack(context):
    atexit.register(os._exit, 0)
    return "wrong"
