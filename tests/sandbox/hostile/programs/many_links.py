import os


def attack(context):
    target = "x" * 40
    for number in range(8_000):
        os.symlink(target, os.path.join(context["scratch"], str(number)))
    return "breached"
