import os


def attack(context):
    """Descriptors that somebody forgot to close."""
    for descriptor in range(3, 1024):
        try:
            if context["needle"].encode() in os.pread(descriptor, 4096, 0):
                return "breached"
        except OSError:
            pass
    return "stopped"
