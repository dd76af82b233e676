import threading

threading.stack_size(65536)


def attack(context):
    gate = threading.Event()
    try:
        for _ in range(100):
            threading.Thread(target=gate.wait, args=(3,), daemon=True).start()
    except RuntimeError:
        return "stopped"
    finally:
        gate.set()
    return "breached"
