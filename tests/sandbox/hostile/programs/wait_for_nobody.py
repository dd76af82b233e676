import os


def attack(context):
    path = os.path.join(context["scratch"], "fifo")
    os.mkfifo(path)
    with open(path) as pipe:
        return pipe.read() or "breached"
