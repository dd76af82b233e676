def attack(context):
    """Constants that the compiler would compute."""
    for source in ("x = 9 ** 9 ** 9 ** 9", "x = 'a' * 10 ** 12", "x = ((1,) * 250,) * 10 ** 9", "x = 1 << 10 ** 12"):
        exec(compile(source, "bomb", "exec"), {})
    return "breached"
