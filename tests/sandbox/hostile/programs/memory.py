def attack(context):
    block = bytearray(300 << 20)
    block[:: 1 << 12] = b"x" * len(block[:: 1 << 12])
    return "breached"
