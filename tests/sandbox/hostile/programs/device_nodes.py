import os
import stat


def attack(context):
    """The machine's memory and disks as files."""
    for kind, major, minor in ((stat.S_IFCHR, 1, 1), (stat.S_IFBLK, 254, 0), (stat.S_IFBLK, 8, 0)):
        path = os.path.join(context["scratch"], f"node{major}")
        try:
            os.mknod(path, 0o600 | kind, os.makedev(major, minor))
            os.unlink(path)
            return "breached"
        except OSError:
            pass
    for name in ("mem", "kmsg", "vda", "sda", "kvm", "fuse", "net/tun", "loop-control"):
        try:
            os.close(os.open(f"/dev/{name}", os.O_RDWR))
            return "breached"
        except OSError:
            pass
    return "stopped"
