import os
import sys


def attack(context):
    os.write(1, b"\xff\xfe\x00\x80")
    sys.stderr.buffer.write(b"\xc3\x28")
    return "\udc80\ud800"
