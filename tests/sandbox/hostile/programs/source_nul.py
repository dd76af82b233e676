def source():
    """A text that ends early for whoever reads it as a C string."""
    return "def attack(context): return 'wrong'\n\0\ndef attack(context): return 'stopped'\n"
