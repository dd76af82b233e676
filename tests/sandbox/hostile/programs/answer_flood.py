def attack(context):
    return "breached" * (1 << 18)
