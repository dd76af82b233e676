def source():
    """An expression deeper than the compiler goes."""
    return "def attack(context):\n    return " + "-" * 500_000 + "1\n"
