import os


def attack(context):
    """Become a program that says it passed and leaves with status 0."""
    os.execv("/bin/sh", ["sh", "-c", "echo '{\"passed\": true}'"])
