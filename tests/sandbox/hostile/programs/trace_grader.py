import ctypes
import sys


def attack(context):
    """Follow the caller line by line and change its variables while it runs."""
    tell = ctypes.pythonapi.PyFrame_LocalsToFast

    def tracer(frame, event, _):
        for name in ("passed", "ok", "result", "answer", "status"):
            if name in frame.f_locals and name != "answer":
                frame.f_locals[name] = True
                tell(ctypes.py_object(frame), 0)
        return tracer

    frame = sys._getframe(1)
    while frame is not None:
        frame.f_trace = tracer
        frame = frame.f_back
    sys.settrace(tracer)
    return "wrong"
