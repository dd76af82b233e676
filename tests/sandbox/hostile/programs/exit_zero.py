import os


def attack(context):
    os._exit(0)
