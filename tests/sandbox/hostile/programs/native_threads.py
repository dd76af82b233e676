import _thread
import time

_thread.stack_size(65536)


def attack(context):
    try:
        for _ in range(200):
            _thread.start_new_thread(time.sleep, (2,))
    except RuntimeError:
        return "stopped"
    return "breached"
