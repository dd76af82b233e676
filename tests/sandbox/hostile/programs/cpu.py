import time


def attack(context):
    while time.process_time() < 1.2:
        pass
    return "breached"
