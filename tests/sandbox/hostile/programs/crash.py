import ctypes


def attack(context):
    ctypes.memset(ctypes.c_void_p(8), 0, 1 << 20)
    return "breached"
