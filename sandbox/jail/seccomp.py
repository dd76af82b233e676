"""The seccomp filter of every jail: what a program has no business asking of the kernel.

Covered: new namespaces and mounts, tracing and reaching into other processes, kernel surface with a history of
holes (bpf, io_uring, keyctl, perf, userfaultfd, modules), every socket family but AF_UNIX, memory that no resource
limit sees (System V shared memory, message queues, memfd), other processes' limits and priorities, foreign
architectures (killed). ``clone3`` answers ENOSYS, because its flags lie in memory where a filter cannot look; the C
library then uses ``clone``. NOT covered: bugs in the system calls that remain.
"""

from __future__ import annotations

import errno
import os
import socket
from functools import cache

from sandbox.errors import SandboxUnavailable

DENIED = """
unshare setns mount umount2 pivot_root chroot move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr
ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp migrate_pages move_pages
setpriority ioprio_set sched_setscheduler sched_setparam sched_setattr
bpf io_uring_setup io_uring_enter io_uring_register add_key request_key keyctl perf_event_open userfaultfd
init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff acct quotactl syslog
iopl ioperm modify_ldt personality open_by_handle_at name_to_handle_at lookup_dcookie vhangup fanotify_init
settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname
shmget shmat shmctl semget semop semctl msgget msgsnd msgrcv msgctl mq_open memfd_create memfd_secret
"""
# Where no namespace keeps a program in its place (tier confined), and where Landlock does not see it either.
DENIED_WHEN_CONFINED = """
fork vfork execve execveat kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open pidfd_send_signal
socket connect bind listen accept accept4
chmod fchmod fchmodat fchmodat2 chown lchown fchown fchownat utime utimes futimesat utimensat truncate
setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat file_setattr
inotify_init inotify_init1 inotify_add_watch setsid setpgid
"""
CLONE_THREAD = 0x00010000
PR_SET_PDEATHSIG = 1
# The kernel sends any signal to a descriptor's owner when bytes arrive: kill() by another name.
SIGNALS_BY_DESCRIPTOR = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX

NEW_NAMESPACES = (
    0x00000080,  # CLONE_NEWTIME
    0x00020000,  # CLONE_NEWNS
    0x02000000,  # CLONE_NEWCGROUP
    0x04000000,  # CLONE_NEWUTS
    0x08000000,  # CLONE_NEWIPC
    0x10000000,  # CLONE_NEWUSER
    0x20000000,  # CLONE_NEWPID
    0x40000000,  # CLONE_NEWNET
)
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
LOW_32_BITS = 0xFFFFFFFF


@cache
def compiled_filter(*, confined: bool = False) -> bytes:
    """The filter as the kernel takes it. Raises :class:`SandboxUnavailable` where libseccomp is missing.

    confined: also no process but the program's own threads, no signals, no sockets, no changes to files' metadata.
    """
    try:
        import pyseccomp
    except (ImportError, RuntimeError, OSError) as error:
        raise SandboxUnavailable(
            f"the seccomp filter cannot be built: {error}",
            "install libseccomp2 (apt install libseccomp2) and pyseccomp",
        ) from error
    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    deny = pyseccomp.ERRNO(errno.EPERM)
    for name in DENIED.split():
        _add(rules, deny, name)
    _add(rules, pyseccomp.ERRNO(errno.ENOSYS), "clone3")
    for flag in NEW_NAMESPACES:
        _add(rules, deny, "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, flag, flag))
    for name in ("socket", "socketpair"):
        _add(rules, deny, name, pyseccomp.Arg(0, pyseccomp.NE, socket.AF_UNIX))
    for name in ("prlimit64", "sched_setaffinity"):
        _add(rules, deny, name, pyseccomp.Arg(0, pyseccomp.NE, 0))
    for request in (TIOCSTI, TIOCLINUX):
        _add(rules, deny, "ioctl", pyseccomp.Arg(1, pyseccomp.MASKED_EQ, LOW_32_BITS, request))
    if confined:
        for name in DENIED_WHEN_CONFINED.split():
            _add(rules, deny, name)
        _add(rules, deny, "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, CLONE_THREAD, 0))
        _add(rules, deny, "prctl", pyseccomp.Arg(0, pyseccomp.EQ, PR_SET_PDEATHSIG))
        for command in SIGNALS_BY_DESCRIPTOR:
            _add(rules, deny, "fcntl", pyseccomp.Arg(1, pyseccomp.MASKED_EQ, LOW_32_BITS, command))
    return _export(rules)


def _add(rules, action: int, name: str, *conditions) -> None:  # type: ignore[no-untyped-def]
    import pyseccomp

    try:
        number = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name)
    except (OSError, ValueError):
        return  # this C library's libseccomp, or this architecture, does not know the call
    if number >= 0:
        rules.add_rule(action, number, *conditions)


def _export(rules) -> bytes:  # type: ignore[no-untyped-def]
    descriptor = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "w+b") as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()
