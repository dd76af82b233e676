def source():
    """Brackets deeper than the parser goes."""
    return "def attack(context):\n    return " + "(" * 100_000 + "0" + ")" * 100_000 + "\n"
