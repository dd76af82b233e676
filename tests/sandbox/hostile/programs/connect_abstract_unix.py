import socket


def attack(context):
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect("\0" + context["abstract"])
    except OSError:
        return "stopped"
    return "breached"
