import ctypes
import os


def attack(context):
    """Give the machine the name that it has."""
    name = os.uname().nodename.encode()
    return "breached" if ctypes.CDLL(None).sethostname(name, len(name)) == 0 else "stopped"
