import os


def attack(context):
    """Files in folders that can be written but not read."""
    hidden = os.path.join(context["scratch"], "hidden")
    os.mkdir(hidden, 0o300)
    try:
        for number in range(8):
            os.mkdir(os.path.join(hidden, str(number)), 0o300)
            with open(os.path.join(hidden, str(number), "file"), "wb") as file:
                for _ in range(8):
                    file.write(bytes(1 << 20))
    except OSError:
        return "stopped"
    return "breached"
