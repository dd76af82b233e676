import ctypes
import os

CLONE_NEWUSER = 0x10000000


def attack(context):
    child = os.fork()
    if child == 0:
        os._exit(0 if ctypes.CDLL(None).unshare(CLONE_NEWUSER) == 0 else 1)
    return "breached" if os.wait()[1] == 0 else "stopped"
