import sys

sys.setrecursionlimit(1 << 30)


class Deep:
    def __repr__(self):
        return repr(self)


def attack(context):
    return repr(Deep())
