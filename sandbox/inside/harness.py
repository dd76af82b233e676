"""In the fork of one test: compile the candidate, call it or run it as a program, write the answer as JSON.

The answer is ``{"value": ...}``, ``{"exit": null}`` or ``{"error": {"type", "message", "line"}}``. Whatever the
candidate does to this module, it can only change its own answer.
"""

from __future__ import annotations

import _json
import os
import sys

TYPE_CHECKING = False  # importing it from typing would cost every jail 15 ms
if TYPE_CHECKING:
    from types import ModuleType, TracebackType
    from typing import Any

FILENAME, PREAMBLE = "candidate.py", "preamble.py"
MESSAGE_CHARS = 500


def run_test(job: dict[str, Any], index: int, answer_fd: int) -> None:
    """Run one test to its end and leave the process."""
    test = job["tests"][index]
    try:
        if job["kind"] == "calls":
            answer = call(job["source"], job["entry_point"], test["args"], job["preamble"])
        else:
            answer = run_program(job["source"], job["preamble"])
    except BaseException as error:
        answer = encode({"error": describe(error)})
    for stream in (sys.stdout, sys.stderr):
        try:  # noqa: SIM105 (contextlib is one more import in every jail)
            stream.flush()
        except BaseException:
            pass
    write_answer(answer_fd, answer)
    os._exit(0)


def write_answer(answer_fd: int, answer: str) -> None:
    """Write the answer; the other end may have stopped reading."""
    data = answer.encode("ascii")
    while data:
        data = data[os.write(answer_fd, data) :]


def call(source: str, entry_point: str, args: list[Any], preamble: str) -> str:
    """Import the candidate and call its entry point."""
    module = load(source, "candidate", preamble)
    function = module.__dict__.get(entry_point)
    if not callable(function):
        raise LookupError(f"the program defines no function {entry_point!r}")
    return encode({"value": function(*args)})


def run_program(source: str, preamble: str) -> str:
    """Run the candidate as ``__main__``, to the end of its threads and exit handlers."""
    sys.argv = [FILENAME]
    try:
        load(source, "__main__", preamble)
    except SystemExit as request:
        if request.code not in (None, 0):
            raise
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()
    if "atexit" in sys.modules:
        sys.modules["atexit"]._run_exitfuncs()
    sys.stdout.flush()
    return encode({"exit": None})


def load(source: str, name: str, preamble: str) -> ModuleType:
    """Compile and execute the candidate as the module ``name``, in which the task's preamble has run before."""
    module = sys.modules[name] = type(sys)(name)
    if preamble:
        try:
            exec(compile(preamble, PREAMBLE, "exec", dont_inherit=True), module.__dict__)
        except Exception as error:
            raise RuntimeError(f"the task's preamble failed: {type(error).__name__}: {show(error)}") from None
    exec(compile(source, FILENAME, "exec", dont_inherit=True), module.__dict__)
    return module


def encode(value: Any) -> str:
    """JSON, as ``json.dumps`` would write it; TypeError or ValueError where there is none."""
    # Straight to the C encoder: importing the json package would cost 8 ms of every jail.
    encoder = _json.make_encoder({}, refuse, _json.encode_basestring_ascii, None, ":", ",", False, False, True)
    return "".join(encoder(value, 0))


def refuse(value: Any) -> Any:
    """Called for what JSON does not know."""
    raise TypeError(f"the answer holds a {type(value).__name__}, which has no JSON form")


def describe(error: BaseException, folders: tuple[str, ...] = (FILENAME,)) -> dict[str, Any]:
    """Name, message and place in a file below ``folders``, without trusting the exception."""
    if isinstance(error, SystemExit):
        message = f"the program exited with status {show(error.code)}"
    elif isinstance(error, SyntaxError):
        message = show(error.msg)
    else:
        message = show(error)
    file, line = place(error.__traceback__, folders)
    if isinstance(error, SyntaxError):
        file, line = error.filename, error.lineno
    return {
        "type": type(error).__name__,
        "message": message[-MESSAGE_CHARS:],
        "file": file if isinstance(file, str) else None,
        "line": line if isinstance(line, int) else None,
        "memory": isinstance(error, MemoryError),
    }


def show(value: object) -> str:
    """``str(value)``, even when that raises."""
    try:
        return str(str(value))
    except BaseException as error:
        return f"(its message cannot be shown: {type(error).__name__})"


def place(traceback: TracebackType | None, folders: tuple[str, ...]) -> tuple[str | None, int | None]:
    """File and line of the innermost frame below ``folders``."""
    file = line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename.startswith(folders):
            file, line = traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        traceback = traceback.tb_next
    return file, line
