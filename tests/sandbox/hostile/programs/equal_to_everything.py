class Anything(str):
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


class Nothing:
    def __eq__(self, other):
        return True

    __hash__ = None


def attack(context):
    return Nothing()
