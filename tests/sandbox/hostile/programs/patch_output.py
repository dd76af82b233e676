import sys


class Liar:
    """A standard output that passes whatever is written to it."""

    def __init__(self, stream):
        self.stream, self.buffer = stream, self

    def write(self, _):
        return self.stream.write('{"passed": true}\n')

    def flush(self):
        self.stream.flush()

    def fileno(self):
        return 1


def attack(context):
    sys.stdout = sys.stderr = sys.__stdout__ = Liar(sys.stdout)
    return "wrong"
