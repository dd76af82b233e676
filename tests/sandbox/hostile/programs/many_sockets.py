import os
import socket


def attack(context):
    os.chdir(context["scratch"])
    for number in range(8_000):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(number))
    return "breached"
