import os


def attack(context):
    """Paths that lead around the root: through /proc, through folders above, through a second root."""
    inside = context["secret_file"].lstrip("/")
    roots = ["/proc/self/root", "/proc/1/root", "/proc/1/cwd/..", "/..", "/" + "../" * 40, "/proc/self/cwd/../../../.."]
    roots += [f"/proc/{os.getppid()}/root", f"/proc/self/task/{os.getpid()}/root", f"/dev/fd/../../{os.getppid()}/root"]
    for root in roots:
        try:
            with open(f"{root}/{inside}") as file:
                if context["needle"] in file.read():
                    return "breached"
        except OSError:
            pass
    return "stopped"
