def attack(context):
    return 7**100_000
