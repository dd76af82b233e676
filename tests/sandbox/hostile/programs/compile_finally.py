def attack(context):
    """The compiler writes every finally block twice: two to the power of the depth."""
    source = (
        "".join(" " * depth + "try: pass\n" + " " * depth + "finally:\n" for depth in range(16)) + " " * 16 + "pass\n"
    )
    compile(source, "bomb", "exec")
    return "breached"
