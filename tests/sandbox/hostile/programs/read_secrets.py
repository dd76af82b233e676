import glob
import os


def attack(context):
    seen = dict(os.environ)
    for path in [context["secret_file"], *glob.glob("/proc/*/environ"), *glob.glob("/proc/*/cmdline")]:
        try:
            with open(path, "rb") as file:
                seen[path] = file.read(1 << 16).decode("utf-8", "replace")
        except OSError:
            pass
    return "breached" if context["needle"] in repr(seen) + repr(sorted(seen)) else "stopped"
