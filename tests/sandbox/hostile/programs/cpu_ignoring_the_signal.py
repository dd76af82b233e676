import signal
import time

signal.signal(signal.SIGXCPU, signal.SIG_IGN)


def attack(context):
    while time.process_time() < 1.2:
        pass
    return "breached"
