import contextlib
import os
import threading
import time


def attack(context):
    def answer():
        time.sleep(0.05)
        for descriptor in range(1, 16):
            with contextlib.suppress(OSError):
                os.write(descriptor, b'{"passed": true}\n')
        os._exit(0)

    threading.Thread(target=answer).start()
    return "wrong"
