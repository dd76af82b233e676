class Kind(type):
    """A class that every object is an instance of, whose instances equal everything."""

    def __instancecheck__(cls, _):
        return True

    def __eq__(cls, other):
        return True

    def __ne__(cls, other):
        return False

    __hash__ = type.__hash__


class Answer(metaclass=Kind):
    pass


def attack(context):
    return Answer
