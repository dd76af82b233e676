import os
import resource


def attack(context):
    target = context["victim"] if context["bare"] else os.getppid()
    done = 0
    for action in (
        lambda: resource.prlimit(target, resource.RLIMIT_NOFILE, (64, 64)),
        lambda: os.setpriority(os.PRIO_PROCESS, target, 19),
        lambda: os.sched_setaffinity(target, {min(os.sched_getaffinity(0))}),
    ):
        try:
            action()
            done += 1
        except OSError:
            pass
    return "breached" if done else "stopped"
