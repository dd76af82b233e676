class Shelf(dict):
    """A dictionary whose contents change while somebody goes through them."""

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    def __iter__(self):
        self[len(self)] = self
        return iter(["value", "passed"])

    def items(self):
        self.clear()
        return [("value", True), ("passed", True)]

    keys = __iter__


def attack(context):
    return Shelf(value="wrong")
