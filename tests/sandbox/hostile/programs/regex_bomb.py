import re
import time


def attack(context):
    """One call into C that no signal handler of Python interrupts."""
    for length in range(20, 40):
        re.match(r"(a|a)+$", "a" * length + "b")
        if time.process_time() > 1.2:
            return "breached"
    return "stopped"
