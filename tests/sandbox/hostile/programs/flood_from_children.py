import os


def attack(context):
    for _ in range(3):
        if os.fork() == 0:
            for _ in range(1024):
                os.write(1, b"x" * 4096)
            os._exit(0)
    os.wait()
    return "breached"
