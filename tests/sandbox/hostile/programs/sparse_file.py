import os


def attack(context):
    path = os.path.join(context["scratch"], "sparse")
    try:
        with open(path, "wb") as file:
            file.truncate(1 << 36)
    except OSError:
        return "stopped"
    return "breached"
