import os


def attack(context):
    """Extended attributes of a file in memory, which count as no bytes of its file system."""
    held = 0
    try:
        for number in range(64):
            path = os.path.join(context["scratch"], f"file{number}")
            with open(path, "w"):
                pass
            for name in "abcd":
                os.setxattr(path, f"user.{name}", bytes(60 << 10))
                held += 60 << 10
    except OSError:
        pass
    return "breached" if held > context["tmpfs_mb"] << 20 else "stopped"
