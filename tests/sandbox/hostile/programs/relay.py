import os
import time


def attack(context):
    """A chain of processes that each fork and leave, so that whoever looks for one finds it gone."""
    if os.fork() == 0:
        os.setsid()
        os.closerange(0, 64)
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            if os.fork() != 0:
                os._exit(0)
        os.execv("/bin/sleep", ["sleep", context["naptime"]])
    time.sleep(1 if context["bare"] else 0.1)
    return "stopped"
