import builtins

TEXT = str


class Word(str):
    """Every text says the same."""

    def __new__(cls, *_):
        return TEXT.__new__(cls, "passed")


def attack(context):
    """Printing, showing and measuring say what the program wants."""
    show = builtins.print
    builtins.print = lambda *_, **__: show('{"passed": true}')
    builtins.str, builtins.repr, builtins.ascii = Word, Word, Word
    builtins.all = builtins.any = lambda *_: True
    builtins.len = lambda *_: 0
    builtins.callable = lambda *_: None
    return "wrong"
