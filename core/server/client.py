"""A client's connection, on which no thread ever waits to receive or to send."""

import select
import socket
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from django.conf import settings
from gunicorn.workers.gthread import TConn

from core.server.request_reader import RequestReader

_READ_BYTES = 64 * 1024
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Arrival(Enum):
    """How much of a request has arrived."""

    READY = auto()
    """The whole request, or enough to refuse it."""
    PART = auto()
    LEFT = auto()
    """Less than a head, and the client has disconnected."""


class ClientSocket(socket.socket):
    """A client's socket, always non-blocking, with a buffer in each direction.

    Bytes that the client does not take yet are kept for ``send_rest``.
    """

    def __init__(self, accepted: socket.socket) -> None:
        super().__init__(fileno=accepted.detach())
        self.setblocking(False)
        self._received = bytearray()
        self.reader = RequestReader(settings.MAX_BODY_BYTES)
        self._is_told_to_continue = False
        self._unsent = bytearray()
        self._readable = select.poll()
        self._readable.register(self, select.POLLIN)

    @property
    def buffered_bytes(self) -> int:
        return len(self._received) + self.reader.held_bytes + len(self._unsent)

    # --- Requests ------------------------------------------------------------------------------

    @property
    def has_received(self) -> bool:
        """Whether a part of the next request is here."""
        return bool(self._received) or self.reader.held_bytes > 0

    def is_readable_within(self, seconds: float) -> bool:
        """Whether the client sends or disconnects within the time."""
        return bool(self._readable.poll(seconds * 1000))

    def receive(self, *, once: bool = False) -> Arrival:
        """Reads until the request is ready or no more bytes are there.

        ``once`` reads one piece at most, so that other clients get their turn.
        """
        is_over = False
        while not self.reader.take(self._received):
            if is_over:
                return self._wait_for_more()
            try:
                data = self.recv(_READ_BYTES)
            except BlockingIOError:
                return self._wait_for_more()
            except OSError:
                return Arrival.LEFT
            if not data:
                has_head = self.reader.take_the_last(self._received)
                return Arrival.READY if has_head else Arrival.LEFT
            self._received += data
            is_over = once
        return Arrival.READY

    def _wait_for_more(self) -> Arrival:
        request = self.reader.request
        if request is not None and request.wants_continue and not self._is_told_to_continue:
            self._is_told_to_continue = True
            try:
                self.send(_CONTINUE)
            except OSError:
                return Arrival.LEFT
        return Arrival.PART

    def end_request(self) -> None:
        """Drops the answered request; the bytes after it begin the next one."""
        self.reader = RequestReader(settings.MAX_BODY_BYTES)
        self._is_told_to_continue = False

    def drop_received(self) -> None:
        self._received.clear()
        self.end_request()

    # --- Replies -------------------------------------------------------------------------------

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    def sendall(self, data: Any, flags: int = 0) -> None:
        self.send(data, flags)

    def send(self, data: Any, flags: int = 0) -> int:
        """Sends all of it: now or through ``send_rest``."""
        rest = memoryview(data)
        while rest and not self._unsent:
            try:
                rest = rest[super().send(rest, flags) :]
            except BlockingIOError:
                break
        self._unsent += rest
        return len(data)

    def send_rest(self) -> bool:
        """Sends as much as the client takes now; returns whether that was all."""
        try:
            while self._unsent:
                del self._unsent[: super().send(self._unsent)]
        except BlockingIOError:
            return False
        return True

    def drop_unsent(self) -> None:
        self._unsent.clear()


class Connection(TConn):
    sock: ClientSocket

    def __init__(
        self, cfg: Any, accepted: Any, *addresses: Any, linger: Callable[["Connection"], None]
    ) -> None:
        """``linger`` closes the connection after its client has, without blocking."""
        super().__init__(cfg, ClientSocket(accepted), *addresses)
        self._linger = linger

    def set_client_timeout(self) -> None:
        self.timeout = time.monotonic() + settings.CLIENT_TIMEOUT_SECONDS

    def close(self, graceful: bool = False) -> None:
        if graceful:
            self._linger(self)
        else:
            super().close()
