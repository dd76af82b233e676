import sys


def attack(context):
    sys.exit(0)
