import fcntl
import os


def attack(context):
    """Bytes that lie in the kernel, where no address space counts them."""
    held, ends = 0, []
    try:
        for _ in range(150):
            ends.append(os.pipe())
            fcntl.fcntl(ends[-1][1], fcntl.F_SETPIPE_SZ, 1 << 20)
            os.set_blocking(ends[-1][1], False)
            held += os.write(ends[-1][1], bytes(1 << 20))
    except OSError:
        pass
    for pair in ends:
        os.close(pair[0])
        os.close(pair[1])
    return "breached" if held > 128 << 20 else "stopped"
