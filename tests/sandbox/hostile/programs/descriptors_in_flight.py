import os
import socket


def attack(context):
    """Open files that no process holds: they are under way in sockets."""
    sent = 0
    null = os.open("/dev/null", os.O_RDONLY)
    held = []
    try:
        for _ in range(60):
            held.append(socket.socketpair(socket.AF_UNIX))
            held[-1][0].setblocking(False)
            for _ in range(40):
                socket.send_fds(held[-1][0], [b"x"], [null] * 200)
                sent += 200
    except OSError:
        pass
    return "breached" if sent > 20_000 else "stopped"
