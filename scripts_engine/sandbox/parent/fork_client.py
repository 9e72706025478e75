"""The worker's side of the fork server: starts it, and asks it for children."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

from scripts_engine.sandbox.protocol import EXIT_STATUS, FORK, NUMBER

_PROJECT_ROOT = Path(__file__).resolve().parents[3]
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from scripts_engine.sandbox.child.fork_server import main; main(int(sys.argv[2]))"
)
_ANSWER_SECONDS = 10.0
# A Lua state is over a thousand small blocks, taken and given back at every run. The GNU C library
# keeps seven of a size aside for each thread, and the others scattered: without that it takes a
# fifth less of a child's time, and no more memory. Other C libraries do not look at it.
_ENVIRONMENT = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


class ForkServerLost(Exception):
    """The fork server does not run, or no longer answers."""


class ForkClient:
    """One fork server. Thread-safe: one request at a time."""

    def __init__(self) -> None:
        """Start the process. Raises ForkServerLost."""
        self.has_forked = False
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(_ANSWER_SECONDS)
        with theirs:
            try:
                # Nothing in it comes from outside.
                self._process = subprocess.Popen(  # noqa: S603
                    [sys.executable, "-I", "-c", _START, str(_PROJECT_ROOT), str(theirs.fileno())],
                    env=_ENVIRONMENT,
                    cwd="/",
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                self._control.close()
                raise ForkServerLost(f"the fork server cannot be started: {error}") from error

    @property
    def pid(self) -> int:
        return self._process.pid

    def fork(self) -> tuple[int, socket.socket, int, int]:
        """A new child: pid, its socket, its pidfd, its log file. Raises ForkServerLost."""
        with self._lock:
            try:
                self._control.send(FORK)
                data, descriptors, _, _ = socket.recv_fds(
                    self._control, NUMBER.size, 3, socket.MSG_CMSG_CLOEXEC
                )
            except OSError as error:
                raise ForkServerLost(f"the fork server does not answer: {error}") from error
        if not data:
            raise ForkServerLost("the fork server has ended")
        self.has_forked = True
        (pid,) = NUMBER.unpack(data)
        channel, pidfd, log_file = descriptors
        return pid, socket.socket(fileno=channel), pidfd, log_file

    def exit_status(self, pid: int) -> int | None:
        """The wait status of a child that has ended, or None when nobody knows any more."""
        with self._lock:
            try:
                self._control.send(EXIT_STATUS + NUMBER.pack(pid))
                data = self._control.recv(NUMBER.size)
            except OSError:
                # A late answer would be taken for that to the next request.
                self._control.close()
                return None
        return int(NUMBER.unpack(data)[0]) if data else None

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """End the fork server and with it every child."""
        self._control.close()
        self._process.kill()
        self._process.wait()

    def forget(self) -> None:
        """In a forked copy of the worker: let go without touching what belongs to the original."""
        os.close(self._control.detach())
        # Popen would complain about a child that is not this process's.
        self._process.returncode = 0
