import sys


def attack(context):
    for _ in range(1024):
        sys.stdout.write("x" * 1024)
    return "breached"
