import os


def attack(context):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            null = os.open("/dev/null", os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            os.execv("/bin/sleep", ["sleep", context["naptime"]])
        os._exit(0)
    os.wait()
    return "stopped"
