import os


def attack(context):
    """Both processes come back from the call: whose answer counts?"""
    if os.fork() == 0:
        os.write(1, b'{"passed": true}\n')
        os._exit(0)
    os.wait()
    os.kill(os.getpid(), 9)
