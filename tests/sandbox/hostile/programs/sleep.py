import time


def attack(context):
    time.sleep(4)
    return "breached"
