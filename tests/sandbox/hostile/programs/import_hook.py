import os
import sys


class Finder:
    """The next module that anybody imports is this one's."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        os._exit(0)


def attack(context):
    sys.meta_path.insert(0, Finder)
    sys.path.insert(0, context["scratch"])
    for name in list(sys.modules):
        if name not in ("sys", "builtins"):
            sys.modules[name] = None
    import grader_that_is_not_there

    return grader_that_is_not_there
