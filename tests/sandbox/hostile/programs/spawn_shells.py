import subprocess


def attack(context):
    children = []
    try:
        while len(children) < 80:
            children += [subprocess.Popen(["/bin/sh", "-c", "sleep 3"])]
    except OSError:
        return "stopped"
    finally:
        for child in children:
            child.kill()
    return "breached"
