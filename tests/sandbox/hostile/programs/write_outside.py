import os


def attack(context):
    home = os.path.expanduser("~")
    for path in [context["marker"], "/usr/vpo-marker", "/etc/vpo-marker", "/dev/vpo-marker", "/vpo-marker"]:
        if context["bare"] and path != context["marker"]:
            continue
        try:
            with open(path, "w") as file:
                file.write("here")
            return "breached"
        except OSError:
            pass
    return "stopped" if home else "breached"
