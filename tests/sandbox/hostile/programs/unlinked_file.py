import os


def attack(context):
    """Bytes of files that have no name any more."""
    try:
        for number in range(8):
            path = os.path.join(context["scratch"], str(number))
            descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
            os.unlink(path)
            for _ in range(8):
                os.write(descriptor, bytes(1 << 20))
    except OSError:
        return "stopped"
    return "breached"
