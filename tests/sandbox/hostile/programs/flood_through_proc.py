def attack(context):
    with open("/proc/self/fd/1", "wb", buffering=0) as stream:
        for _ in range(1024):
            stream.write(b"x" * 1024)
    return "breached"
