import os


class Success(BaseException):
    def __str__(self):
        os._exit(0)

    __repr__ = __str__


def attack(context):
    raise Success
