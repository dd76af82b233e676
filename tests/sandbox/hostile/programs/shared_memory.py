import mmap


def attack(context):
    try:
        block = mmap.mmap(-1, 300 << 20)
    except OSError:
        return "stopped"
    for offset in range(0, len(block), 1 << 12):
        block[offset] = 1
    return "breached"
