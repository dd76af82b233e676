import os
import signal


def attack(context):
    """Everybody in the group, the session, the namespace; then itself."""
    os.kill(0, signal.SIGTERM)
    os.kill(0, signal.SIGKILL)
    return "breached"
