import os


def attack(context):
    link = os.path.join(context["scratch"], "link")
    os.symlink(context["secret_file"], link)
    try:
        with open(link) as file:
            return "breached" if context["needle"] in file.read() else "stopped"
    except OSError:
        return "stopped"
