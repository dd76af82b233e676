import signal
import time


def attack(context):
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))
    for number in set(range(1, signal.NSIG)) - {signal.SIGKILL, signal.SIGSTOP, 32, 33}:
        signal.signal(number, signal.SIG_IGN)
    time.sleep(3)
    return "breached"
