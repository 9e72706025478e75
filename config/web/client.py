"""A request arrives within ``CLIENT_TIMEOUT`` seconds, and its reply is taken within as many."""

import select
import socket
import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from gunicorn.workers.gthread import TConn


class ClientTooSlow(BaseException):
    """Headers and body did not arrive in time.

    No ``Exception``: whoever reads a body on the way down takes those for a client that has left,
    and this one is still there to be told.
    """


class ClientSocket(socket.socket):
    """A client's socket, which waits for nobody beyond its deadlines.

    It reads and sends at once where it can. gunicorn switches its sockets between waiting and not
    waiting five times a request, and at each of these system calls a thread may lose the
    interpreter; here that has no effect.
    """

    def __init__(self, accepted: socket.socket) -> None:
        super().__init__(fileno=accepted.detach())
        super().setblocking(False)
        self._deadline = 0.0
        self._limit_seconds: float | None = None
        self._held: bytes | None = None
        self._holds_next = False
        self._readable = select.poll()
        self._readable.register(self, select.POLLIN)

    def begin_request(self) -> None:
        """From now on ``CLIENT_TIMEOUT`` for the whole request, however small its pieces are."""
        self._deadline = time.monotonic() + settings.CLIENT_TIMEOUT_SECONDS

    def is_readable_within(self, seconds: float) -> bool:
        """Whether the client sends something, or leaves, in that time."""
        return bool(self._readable.poll(seconds * 1000))

    def setblocking(self, flag: bool) -> None:
        """It stays as it is."""

    def settimeout(self, value: float | None) -> None:
        """How long each reading may wait, where that ends before the request's deadline."""
        self._limit_seconds = value

    def gettimeout(self) -> float | None:
        return self._limit_seconds

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        """Raises ClientTooSlow; and TimeoutError at a limit of ``settimeout``."""
        while True:
            try:
                return super().recv(bufsize, flags)
            except BlockingIOError:
                self._wait_to_receive()

    def recv_now(self, size: int) -> bytes:
        """Raises BlockingIOError where there is nothing yet."""
        return super().recv(size)

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Raises TimeoutError."""
        if self._holds_next:
            self._held, self._holds_next = bytes(data), False
            return
        if self._held is not None:
            data, self._held = self._held + data, None
        self.send(data, flags)

    def send(self, data: Any, flags: int = 0) -> int:
        """All of it, past what is held. Raises TimeoutError."""
        rest = memoryview(data)
        deadline = time.monotonic() + settings.CLIENT_TIMEOUT_SECONDS
        while rest:
            try:
                rest = rest[super().send(rest, flags) :]
            except BlockingIOError:
                self._wait_to_send(deadline)
        return len(data)

    def sendfile(self, file: Any, offset: int = 0, count: int | None = None) -> int:
        self.send_held()
        self.settimeout(settings.CLIENT_TIMEOUT_SECONDS)
        try:
            return super().sendfile(file, offset, count)
        finally:
            self.settimeout(None)

    def hold_headers(self) -> None:
        """What is sent next leaves together with what is sent after it."""
        self._holds_next = True

    def send_held(self) -> None:
        """Nothing comes after it."""
        self._holds_next = False
        if self._held is not None and self.fileno() != -1:
            self.sendall(b"")

    def _wait_to_receive(self) -> None:
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise ClientTooSlow
        limit = self._limit_seconds
        is_limited = limit is not None and limit < remaining
        wait_seconds = limit if limit is not None and is_limited else remaining
        if not self.is_readable_within(wait_seconds):
            raise TimeoutError("timed out") if is_limited else ClientTooSlow

    def _wait_to_send(self, deadline: float) -> None:
        writable = select.poll()
        writable.register(self, select.POLLOUT)
        remaining = deadline - time.monotonic()
        if remaining <= 0 or not writable.poll(remaining * 1000):
            raise TimeoutError("timed out")


class Connection(TConn):
    """A client's connection."""

    parser: Any
    sock: ClientSocket

    def __init__(
        self, cfg: Any, accepted: Any, *addresses: Any, linger: Callable[["Connection"], None]
    ) -> None:
        """``linger`` ends it as soon as its client has, without waiting."""
        super().__init__(cfg, ClientSocket(accepted), *addresses)
        self._linger = linger

    def init(self) -> None:
        """Called before each request."""
        super().init()
        self.sock.begin_request()

    @property
    def has_more(self) -> bool:
        """Whether a part of the next request has been read already."""
        return bool(self.parser.unreader.buf.getbuffer().nbytes)

    def close(self, graceful: bool = False) -> None:
        if graceful:
            self._linger(self)
        else:
            super().close()
