import os


def attack(context):
    """Not what is in a file outside, but whether it is there, how large it is and when it was written."""
    try:
        return "breached" if os.stat(context["secret_file"]).st_size else "stopped"
    except OSError:
        return "stopped"
