def source():
    """The compiler writes every finally block twice: two to the power of the depth."""
    lines = [" " * depth + ("try: pass\n" + " " * depth + "finally:\n") for depth in range(17)]
    return "def attack(context): return 'breached'\n" + "".join(lines) + " " * 17 + "pass\n"
