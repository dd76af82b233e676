import sys
import threading


def attack(context):
    """Recursion in a thread with a small stack, past every limit of Python's."""
    sys.setrecursionlimit(1 << 30)
    threading.stack_size(32768)

    def dig(depth):
        return sorted([depth], key=lambda _: dig(depth + 1))

    thread = threading.Thread(target=dig, args=(0,))
    thread.start()
    thread.join()
    return "stopped"
