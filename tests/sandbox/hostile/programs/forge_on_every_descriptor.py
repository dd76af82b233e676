import contextlib
import os


def attack(context):
    forged = b'{"value": "breached", "status": "passed", "passed": true}\n'
    for descriptor in range(1, 256):
        with contextlib.suppress(OSError):
            os.write(descriptor, forged)
    os._exit(0)
