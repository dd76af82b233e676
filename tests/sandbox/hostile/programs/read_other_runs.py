import os
import time


def attack(context):
    """Look for a program that runs at the same time: its files, its processes, its memory."""
    end = time.monotonic() + 0.6
    while time.monotonic() < end:
        for folder, _, files in os.walk(context["scratch"] if context["bare"] else "/tmp"):
            for name in files:
                try:
                    with open(os.path.join(folder, name), errors="replace") as file:
                        if context["needle"] in file.read(4096):
                            return "breached"
                except OSError:
                    pass
        for pid in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else ()):
            for name in ("cmdline", "environ", "comm"):
                try:
                    with open(f"/proc/{pid}/{name}", errors="replace") as file:
                        if context["needle"] in file.read():
                            return "breached"
                except OSError:
                    pass
        time.sleep(0.05)
    return "stopped"
