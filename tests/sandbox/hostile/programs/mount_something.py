import ctypes
import os

CLONE_NEWNS = 0x00020000


def attack(context):
    """A file system of its own, over a folder; in a child, so that nothing stays where it works."""
    child = os.fork()
    if child == 0:
        libc = ctypes.CDLL(None)
        private = libc.unshare(CLONE_NEWNS) == 0 and libc.mount(b"none", b"/", None, 0x44000, None) == 0
        done = (private or not context["bare"]) and libc.mount(
            b"none", context["scratch"].encode(), b"tmpfs", 0, None
        ) == 0
        os._exit(0 if done else 1)
    return "breached" if os.waitpid(child, 0)[1] == 0 else "stopped"
