import os


def attack(context):
    """Folders in folders, deeper than a recursive deletion can follow."""
    os.chdir(context["scratch"])
    for _ in range(8_000):
        os.mkdir("d")
        os.chdir("d")
    return "breached"
