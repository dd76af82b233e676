import socket


def attack(context):
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(context["unix_path"])
    except OSError:
        return "stopped"
    return "breached"
