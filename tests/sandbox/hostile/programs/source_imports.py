def source():
    """Imports, which a grader may look at before it runs anything."""
    rows = "".join(f"import {'a' * 200}, {'b, ' * 200} c\n" for _ in range(500))
    return "import os; os._exit(0)\n" + rows + "import " + "os ," * 20_000 + " os\n" + " \t" * 100_000 + "from x\n"
