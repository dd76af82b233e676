import socket


def attack(context):
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()
    except OSError:
        return "stopped"
    return "breached"
