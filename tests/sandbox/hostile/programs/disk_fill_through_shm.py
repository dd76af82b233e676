import os


def attack(context):
    made = []
    try:
        for number in range(8):
            made.append(f"/dev/shm/vpo-hostile-{os.getpid()}-{number}")
            with open(made[-1], "wb") as file:
                file.write(bytes(8 << 20))
    except OSError:
        return "stopped"
    finally:
        for path in made:
            if os.path.exists(path):
                os.unlink(path)
    return "breached"
