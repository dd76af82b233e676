import os


def attack(context):
    for number in range(8_000):
        os.close(os.open(os.path.join(context["scratch"], str(number)), os.O_CREAT | os.O_WRONLY))
    return "breached"
