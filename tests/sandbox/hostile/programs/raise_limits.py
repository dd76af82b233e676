import resource


def attack(context):
    raised = 0
    for name in ("RLIMIT_CPU", "RLIMIT_AS", "RLIMIT_NPROC", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_MEMLOCK"):
        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        wanted = hard * 2 if hard != resource.RLIM_INFINITY else hard
        try:
            resource.setrlimit(number, (wanted, wanted))
            raised += 1
        except (OSError, ValueError):
            pass
    return "breached" if raised else "stopped"
