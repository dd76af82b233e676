class Rows(list):
    """A list that grows while it is written down."""

    def __iter__(self):
        while True:
            yield "breached" * 1024

    def __len__(self):
        return 1 << 40

    def __getitem__(self, _):
        return self


def attack(context):
    return Rows(["wrong"])
