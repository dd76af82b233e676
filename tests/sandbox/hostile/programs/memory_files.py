import os


def attack(context):
    try:
        descriptor = os.memfd_create("hidden")
        for _ in range(100):
            os.write(descriptor, bytes(1 << 20))
    except OSError:
        return "stopped"
    return "breached"
