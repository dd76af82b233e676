"""What there is to breach: secrets, listeners, a process to kill, a file to leave; and whether any of it was touched."""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.sandbox.observe import gone, processes_with

SECRET_NAME = "VPO_API_KEY"


class World:
    """One world for one run of one program, below an empty ``folder``; see :func:`new_world`."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.needle = "needle-" + os.urandom(8).hex()
        self.expected = "expected-" + os.urandom(8).hex()
        self.naptime = f"600.{int.from_bytes(os.urandom(6), 'big')}"
        self.marker = folder / "marker"
        self.scratch = folder / "scratch"
        self.secret_file = folder / "secret"
        self.scratch.mkdir()
        self.secret_file.write_text(self.needle, encoding="utf-8")
        self.leaked = os.open(self.secret_file, os.O_RDONLY)
        stack.callback(os.close, self.leaked)
        os.set_inheritable(self.leaked, True)
        environment = {**os.environ, SECRET_NAME: self.needle}
        self.victim = subprocess.Popen(["sleep", "90"], env=environment)
        stack.callback(self._bury_victim)
        self.folder, self.callers = folder, 0
        self._listen(stack)

    def context(self, **changes: Any) -> dict[str, Any]:
        """What a program is told."""
        return {
            "needle": self.needle,
            "secret_file": str(self.secret_file),
            "folder": str(self.folder),
            "marker": str(self.marker),
            "host": os.uname().nodename,
            "port": self._tcp.getsockname()[1],
            "udp_port": self._udp.getsockname()[1],
            "abstract": self.needle,
            "unix_path": str(self.folder / "socket"),
            "victim": self.victim.pid,
            "naptime": self.naptime,
            **changes,
        }

    def touched(self, patience_s: float = 5.0) -> list[str]:
        """What happened outside that should not have."""
        signs = {
            "it left a file outside": self.marker.exists(),
            "it reached a socket outside": self.callers > 0,
            "it killed a process outside": self.victim.poll() is not None,
            "a process of it lives on": not gone(self.naptime, patience_s),
        }
        return [sign for sign, seen in signs.items() if seen]

    def end_survivors(self) -> None:
        """Kill what a bare interpreter let live."""
        for pid in processes_with(self.naptime):
            os.kill(pid, 9)

    def _bury_victim(self) -> None:
        self.victim.kill()
        self.victim.wait()

    def _listen(self, stack: ExitStack) -> None:
        self._tcp, abstract, named = socket.socket(), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        here, there = socket.socketpair()
        for open_socket in (self._tcp, abstract, named, self._udp, here, there):
            stack.callback(open_socket.close)
        for name, listener in ((("127.0.0.1", 0), self._tcp), ("\0" + self.needle, abstract)):
            listener.bind(name)
        named.bind(str(self.folder / "socket"))
        self._udp.bind(("127.0.0.1", 0))
        for listener in (self._tcp, abstract, named):
            listener.listen()
        counter = threading.Thread(target=self._count, args=(there, self._tcp, abstract, named, self._udp))
        counter.start()
        stack.callback(counter.join)
        stack.callback(here.send, b"the end")

    def _count(self, end: socket.socket, *listeners: socket.socket) -> None:
        with selectors.DefaultSelector() as selector:
            for waited in (end, *listeners):
                selector.register(waited, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is end:
                        return
                    self.callers += 1
                    if key.fileobj is self._udp:
                        self._udp.recv(64)
                    else:
                        key.fileobj.accept()[0].close()  # type: ignore[union-attr]


@contextmanager
def new_world(folder: Path) -> Iterator[World]:
    """A world in an empty folder, with a secret in this process's environment; everything ends with it."""
    with ExitStack() as stack:
        world = World(folder, stack)
        before = os.environ.get(SECRET_NAME)
        os.environ[SECRET_NAME] = world.needle
        try:
            yield world
        finally:
            world.end_survivors()
            del os.environ[SECRET_NAME]
            if before is not None:
                os.environ[SECRET_NAME] = before
