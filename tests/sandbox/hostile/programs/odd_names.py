import os


def attack(context):
    """Files that no text can name."""
    folder = context["scratch"].encode()
    for name in (b"\xff\xfe", b"\n", b"\x1b[2J", "‮".encode(), b"a" * 255, b"-rf", b"*"):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(b"\x00\xff")
    return "\ud800" + "\x00" * 8
