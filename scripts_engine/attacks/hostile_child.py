"""Simulates a compromised sandbox child, which sends arbitrary bytes to the worker."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from scripts_engine.sandbox.log_area import create_area_file
from scripts_engine.sandbox.parent.child_process import ChildProcess

# The process only has to exist; its side of the socket is served here.
_WAIT_FOR_END_OF_INPUT = "import sys; sys.stdin.read()"


@contextmanager
def hostile_child(sent: bytes, log: bytes = b"") -> Iterator[ChildProcess]:
    """A child that sends these bytes, reads everything, and has written ``log`` to its log area."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(  # noqa: S603 (no external input)
        [sys.executable, "-I", "-S", "-c", _WAIT_FOR_END_OF_INPUT], stdin=subprocess.PIPE
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
    # The worker closes the socket as soon as it refuses the bytes.
    with suppress(OSError):
        channel.sendall(sent)


def _read_all(channel: socket.socket) -> None:
    with suppress(OSError):
        while channel.recv(1 << 16):
            pass
