import socket


def attack(context):
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"hello", ("127.0.0.1", context["udp_port"]))
    except OSError:
        return "stopped"
    return "breached"
