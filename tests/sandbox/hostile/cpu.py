import time


def attack(context):
    while time.process_time() < 1.5:
        pass
    return "breached"
