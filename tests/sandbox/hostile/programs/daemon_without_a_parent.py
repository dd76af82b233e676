import os


def attack(context):
    """Many levels of orphans, each in a session of its own."""
    if os.fork() == 0:
        for _ in range(6):
            if os.fork() != 0:
                os._exit(0)
            os.setsid()
        os.closerange(0, 256)
        os.execv("/bin/sleep", ["sleep", context["naptime"]])
    os.wait()
    return "stopped"
