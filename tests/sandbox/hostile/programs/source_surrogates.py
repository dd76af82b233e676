def source():
    """Characters that UTF-8 cannot carry."""
    return "def attack(context): return 'wrong'\nname = '\ud800\udfff'\n# \udc80\n"
