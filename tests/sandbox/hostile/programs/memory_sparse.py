import mmap

MAP_NORESERVE = 0x4000


def attack(context):
    """A terabyte of addresses, touched here and there."""
    try:
        block = mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE)
    except (OSError, OverflowError):
        return "stopped"
    for place in range(0, len(block), 1 << 34):
        block[place] = 1
    return "breached"
