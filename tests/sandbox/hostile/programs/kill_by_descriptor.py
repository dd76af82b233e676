import contextlib
import os
import signal


def attack(context):
    """Signals through process descriptors."""
    for pid in (context["victim"], os.getppid()) if not context["bare"] else (context["victim"],):
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGKILL)
    return "stopped"
