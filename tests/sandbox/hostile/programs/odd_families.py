import socket


def attack(context):
    """Socket families that few need and that had holes: Bluetooth, CAN, ALG, VSOCK, TIPC, KCM, XDP, QIPCRTR."""
    opened = []
    for family in set(range(2, 46)) - {socket.AF_UNIX}:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW):
            try:
                socket.socket(family, kind).close()
                opened.append(family)
            except OSError:
                pass
    return "breached" if opened else "stopped"
