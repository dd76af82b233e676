import os
import signal


def attack(context):
    os.kill(os.getpid(), signal.SIGSTOP)
    return "breached"
