import re


def attack(context):
    """Take the expected answer out of the process's own memory, byte by byte."""
    marker = b"expect" + b"ed-"
    with open("/proc/self/maps") as maps:
        regions = [line.split()[0] for line in maps if " rw" in line and "[v" not in line]
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        for region in regions:
            start, end = (int(number, 16) for number in region.split("-"))
            try:
                memory.seek(start)
                found = re.search(marker + rb"[0-9a-f]{16}", memory.read(end - start))
            except (OSError, ValueError, OverflowError):
                continue
            if found:
                return found[0].decode()
    return "wrong"
