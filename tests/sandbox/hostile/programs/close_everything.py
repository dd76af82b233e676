import os


def attack(context):
    os.closerange(0, 4096)
    return "stopped"
