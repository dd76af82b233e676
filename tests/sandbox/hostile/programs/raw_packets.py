import socket


def attack(context):
    kinds = [(17, socket.SOCK_RAW), (socket.AF_INET, socket.SOCK_RAW), (40, socket.SOCK_STREAM), (16, socket.SOCK_RAW)]
    for family, kind in kinds:
        try:
            socket.socket(family, kind, socket.IPPROTO_ICMP if family == socket.AF_INET else 0).close()
            return "breached"
        except OSError:
            pass
    return "stopped"
