import ctypes
import os


class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def attack(context):
    """process_vm_readv on the stack of another process."""
    libc = ctypes.CDLL(None, use_errno=True)
    own = ctypes.create_string_buffer(64)
    target = context["victim"] if context["bare"] else os.getppid()
    try:
        with open(f"/proc/{target}/maps") as maps:
            start = next(int(line.split("-")[0], 16) for line in maps if "[stack]" in line)
    except (OSError, StopIteration):
        start = ctypes.addressof(own)
    here, there = Piece(ctypes.addressof(own), 64), Piece(start, 64)
    count = libc.process_vm_readv(target, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    return "breached" if count > 0 else "stopped"
