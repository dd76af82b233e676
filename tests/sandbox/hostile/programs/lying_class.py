class Answer:
    """Says that it is whatever class it is taken for."""

    @property
    def __class__(self):
        return str

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    def __hash__(self):
        return 0


def attack(context):
    return Answer()
