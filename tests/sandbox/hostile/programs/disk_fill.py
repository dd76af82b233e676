import os


def attack(context):
    folder = context["scratch"]
    try:
        for number in range(8):
            with open(os.path.join(folder, f"fill{number}"), "wb") as file:
                file.write(bytes(8 << 20))
    except OSError:
        return "stopped"
    return "breached"
