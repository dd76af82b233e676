import socket


def attack(context):
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            with socket.socket(family) as listener:
                listener.bind((address, 0))
                listener.listen()
            return "breached"
        except OSError:
            pass
    return "stopped"
