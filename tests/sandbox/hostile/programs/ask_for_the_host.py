import os


def attack(context):
    return "breached" if os.uname().nodename == context["host"] else "stopped"
