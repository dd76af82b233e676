import ctypes


def attack(context):
    """Make one zero, in the interpreter's own memory: so does the status of whoever fails."""
    ctypes.memmove(id(1) + 16, id(0) + 16, 12)
    return "wrong"
