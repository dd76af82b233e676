def attack(context):
    """Recursion in C, which no limit of Python's counts."""
    chain = iter([1])
    for _ in range(200_000):
        chain = map(abs, chain)
    return list(chain)
