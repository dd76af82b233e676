import os
import signal


def attack(context):
    """A process in a session of its own that is stopped and deaf when somebody comes to end it."""
    child = os.fork()
    if child == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        null = os.open("/dev/null", os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        os.execv("/bin/sh", ["sh", "-c", f"kill -STOP $$; sleep {context['naptime']}"])
    os.waitpid(child, os.WUNTRACED)
    return "stopped"
