import os


class Failure(Exception):
    """An exception that misbehaves whenever somebody wants to know something about it."""

    def __str__(self):
        raise self

    __repr__ = __str__

    @property
    def __class__(self):
        raise self

    @property
    def args(self):
        raise self

    def with_traceback(self, _):
        os._exit(0)


Failure.__name__ = Failure.__qualname__ = '{"passed": true}\n\x1b[2J\x00\ud800'


def attack(context):
    raise Failure
