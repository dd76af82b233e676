import os

SECRET = [
    "/etc/shadow",
    "/etc/ssh/ssh_host_ed25519_key",
    "/root/.bash_history",
    "/proc/kcore",
    "/proc/kmsg",
    "/dev/mem",
]


def attack(context):
    seen = []
    for path in [*SECRET, context["secret_file"], context["folder"], "/root", "/home", "/run", "/var/log", "/boot"]:
        try:
            if os.path.isdir(path):
                seen += os.listdir(path)
            else:
                with open(path, "rb") as file:
                    file.read(1)
                seen.append(path)
        except OSError:
            pass
    return "breached" if seen else "stopped"
