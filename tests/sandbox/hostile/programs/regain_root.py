import contextlib
import os


def attack(context):
    for action in (
        lambda: os.setresuid(0, 0, 0),
        lambda: os.setresgid(0, 0, 0),
        lambda: os.setgroups([0]),
        lambda: os.chroot("/"),
    ):
        with contextlib.suppress(OSError):
            action()
    path = os.path.join(context["scratch"], "mine")
    with contextlib.suppress(OSError):
        with open(path, "w"):
            pass
        os.chown(path, 0, 0)
        if os.stat(path).st_uid == 0:
            return "breached"
    return "breached" if 0 in (os.getuid(), os.geteuid(), os.getgid()) else "stopped"
