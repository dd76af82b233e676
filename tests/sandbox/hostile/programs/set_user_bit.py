import os
import subprocess


def attack(context):
    """Programs that give their caller another user's rights."""
    for argv in (["su", "-c", "id"], ["mount", "-t", "tmpfs", "none", "/tmp"], ["newgrp"], ["sudo", "-n", "id"]):
        if context["bare"] and argv[0] != "su":
            continue
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=5, check=False)
            if b"uid=0" in done.stdout or (argv[0] == "mount" and done.returncode == 0):
                return "breached"
        except (OSError, subprocess.SubprocessError):
            pass
    return "breached" if os.geteuid() == 0 else "stopped"
