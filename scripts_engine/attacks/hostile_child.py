"""Simulates a child that was taken over: it sends any bytes to the worker."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from scripts_engine.sandbox.log_area import create_area_file
from scripts_engine.sandbox.parent.child_process import ChildProcess

# The child only needs a process; this module sends its messages.
_WAIT_FOR_THE_END = "import sys; sys.stdin.read()"


@contextmanager
def hostile_child(sent: bytes, log: bytes = b"") -> Iterator[ChildProcess]:
    """A child that sends these bytes, has written `log` to its log, and reads all that it gets."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(  # noqa: S603 (no part comes from outside)
        [sys.executable, "-I", "-S", "-c", _WAIT_FOR_THE_END], stdin=subprocess.PIPE
    )
    log_file = create_area_file()
    os.pwrite(log_file, log, 0)
    child = ChildProcess(process.pid, ours, os.pidfd_open(process.pid), log_file)
    threads = [
        threading.Thread(target=_send, args=[theirs, sent]),
        threading.Thread(target=_read_all, args=[theirs]),
    ]
    for thread in threads:
        thread.start()
    try:
        yield child
    finally:
        child.end()
        for thread in threads:
            thread.join()
        theirs.close()
        process.communicate()


def _send(channel: socket.socket, sent: bytes) -> None:
    # The worker closes the socket as soon as it refuses the child.
    with suppress(OSError):
        channel.sendall(sent)


def _read_all(channel: socket.socket) -> None:
    with suppress(OSError):
        while channel.recv(1 << 16):
            pass
