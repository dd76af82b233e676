def attack(context):
    """Ask the kernel to kill everybody else first when memory runs out."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("-1000")
    except OSError:
        return "stopped"
    return "breached"
