import os


def attack(context):
    target = context["victim"] if context["bare"] else os.getppid()
    reached = []
    for name in ("mem", "environ", "fd", "maps", "cwd"):
        try:
            path = f"/proc/{target}/{name}"
            os.listdir(path) if name in ("fd", "cwd") else os.close(os.open(path, os.O_RDONLY))
            reached.append(name)
        except OSError:
            pass
    return "breached" if set(reached) - {"maps"} else "stopped"
