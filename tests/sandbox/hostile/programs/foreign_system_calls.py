import ctypes
import mmap
import os
import platform

# mov eax, 20 (getpid of 32-bit x86); int 0x80; ret
CODE = bytes.fromhex("b814000000cd80c3")


def attack(context):
    """System calls of another architecture, which a filter for this one does not understand."""
    if platform.machine() != "x86_64":
        return "stopped"
    child = os.fork()
    if child == 0:
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(CODE)
        function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
        os._exit(0 if function() == os.getpid() else 1)
    return "breached" if os.waitpid(child, 0)[1] == 0 else "stopped"
