import os


def attack(context):
    try:
        for _ in range(900):
            os.open("/dev/null", os.O_RDONLY)
    except OSError:
        return "stopped"
    return "breached"
