"""The installed command on a terminal of its own, as a person sees it."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from conftest import MOONHOOK, Client

_CTRL_C = "\x03"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_SECONDS = 60
# So that Ctrl-C reaches the command.
_WITH_TERMINAL = """import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])"""


class Terminal:
    def __init__(self, client: Client, arguments: tuple[str, ...], columns: int) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.raw = ""
        self.process = subprocess.Popen(
            [sys.executable, "-c", _WITH_TERMINAL, MOONHOOK, *arguments],
            cwd=client.folder,
            env=client.environment | {"TERM": "xterm-256color"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)

    @property
    def shown(self) -> str:
        """What is on the terminal, without colours."""
        return _COLOUR.sub("", self.raw).replace("\r\n", "\n")

    @property
    def echoes(self) -> bool:
        """Whether what a person types is shown."""
        return bool(termios.tcgetattr(self._master)[3] & termios.ECHO)

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + _SECONDS
        while text not in self.shown:
            assert time.monotonic() < deadline, self.raw
            assert self._read(), f"ended without “{text}”: {self.raw}"

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        """Presses Ctrl-C until the command ends: one has no effect while it begins to read."""
        while self.process.poll() is None:
            self.type(_CTRL_C)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=10)

    def end(self) -> int:
        """Waits for the end; the exit code."""
        while self._read():
            pass
        return self.process.wait(timeout=_SECONDS)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)

    def _read(self) -> bool:
        """Whether there may be more."""
        if not select.select([self._master], [], [], _SECONDS)[0]:
            return False
        try:
            self.raw += os.read(self._master, 65536).decode("utf-8", "replace")
        except OSError:
            # The command has ended, and nothing is left to be read.
            return False
        return True


@contextmanager
def on_terminal(client: Client, *arguments: str, columns: int = 80) -> Iterator[Terminal]:
    terminal = Terminal(client, arguments, columns)
    try:
        yield terminal
    finally:
        terminal.close()
