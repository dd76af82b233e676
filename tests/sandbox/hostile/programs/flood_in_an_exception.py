def attack(context):
    raise ValueError("breached" * (1 << 18))
