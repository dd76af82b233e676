import socket


def attack(context):
    try:
        with socket.create_connection(("127.0.0.1", context["port"]), timeout=1) as connection:
            connection.sendall(b"hello")
    except OSError:
        return "stopped"
    return "breached"
