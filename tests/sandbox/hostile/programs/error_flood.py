import os


def attack(context):
    for _ in range(1024):
        os.write(2, b"x" * 1024)
    return "breached"
