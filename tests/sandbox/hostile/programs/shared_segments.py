import ctypes


def attack(context):
    libc = ctypes.CDLL(None)
    segment = libc.shmget(0, 1 << 20, 0o1600)
    if segment == -1:
        return "stopped"
    libc.shmctl(segment, 0, None)
    return "breached"
