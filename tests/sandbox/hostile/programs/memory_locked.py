import ctypes
import mmap


def attack(context):
    try:
        block = mmap.mmap(-1, 32 << 20)
    except OSError:
        return "stopped"
    address = ctypes.addressof(ctypes.c_char.from_buffer(block))
    libc = ctypes.CDLL(None)
    return "breached" if libc.mlock(ctypes.c_void_p(address), ctypes.c_size_t(len(block))) == 0 else "stopped"
