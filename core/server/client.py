"""A client's connection, on which no thread ever waits to receive or to send."""

import re
import select
import socket
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from django.conf import settings
from gunicorn.workers.gthread import TConn

from core.server.framing import Frame

_READ_BYTES = 64 * 1024
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class RequestCutOff(BaseException):
    """A thread asked for bytes of a request that have not arrived.

    Not an ``Exception``: code that reads a body would take it for a disconnected client, and this
    client is still connected and gets an error reply.
    """


class Arrival(Enum):
    """How much of a request has arrived."""

    READY = auto()
    """The whole request, or enough to refuse it."""
    PART = auto()
    LEFT = auto()
    """Nothing, and the client has disconnected."""


class ClientSocket(socket.socket):
    """A client's socket, always non-blocking, with a buffer in each direction.

    gunicorn's parser reads the bytes that ``receive`` has gathered; bytes that the client does not
    take yet are kept for ``send_rest``. gunicorn switches its sockets between blocking and
    non-blocking mode five times a request, and each of these system calls may cost the thread the
    GIL, so here the switches have no effect.
    """

    def __init__(self, accepted: socket.socket) -> None:
        super().__init__(fileno=accepted.detach())
        super().setblocking(False)
        self._received = bytearray()
        # How many received bytes the parser has taken.
        self._taken = 0
        self._has_ended = False
        self._frame = Frame(settings.MAX_BODY_BYTES)
        self._is_told_to_continue = False
        self._unsent = bytearray()
        self._readable = select.poll()
        self._readable.register(self, select.POLLIN)

    def setblocking(self, flag: bool) -> None:
        """Has no effect: the socket stays non-blocking."""

    def settimeout(self, value: float | None) -> None:
        """Has no effect: no call waits."""

    def gettimeout(self) -> float | None:
        return None

    @property
    def buffered_bytes(self) -> int:
        return len(self._received) + len(self._unsent)

    # --- Requests ------------------------------------------------------------------------------

    @property
    def has_received(self) -> bool:
        """Whether a part of a request is in the buffer."""
        return bool(self._received)

    def has_start(self, pattern: re.Pattern[bytes]) -> bool:
        """Whether the request in the buffer begins like this."""
        return pattern.match(self._received) is not None

    def head_and_body(self) -> tuple[bytes, bytes] | None:
        """Returns both parts of the request; ``None`` if it is incomplete or chunked."""
        head_end = self._frame.head_end
        if head_end is None or not self._frame.is_whole:
            return None
        buffer = self._received
        return bytes(buffer[:head_end]), bytes(buffer[head_end : self._frame.end])

    @property
    def is_request_whole(self) -> bool:
        return self._frame.is_whole

    @property
    def is_request_read(self) -> bool:
        """Whether the parser has taken the whole request, so that the next one follows."""
        return self._frame.is_whole and self._taken == self._frame.end

    @property
    def is_request_too_large(self) -> bool:
        return self._frame.is_too_large

    def is_readable_within(self, seconds: float) -> bool:
        """Whether the client sends or disconnects within the time."""
        return bool(self._readable.poll(seconds * 1000))

    def receive(self, *, once: bool = False) -> Arrival:
        """Reads until the request is ready or no more bytes are there.

        ``once`` reads one piece at most, so that other clients get their turn.
        """
        is_over = False
        while not self._frame.look(self._received):
            if is_over:
                return self._wait_for_more()
            try:
                data = super().recv(_READ_BYTES)
            except BlockingIOError:
                return self._wait_for_more()
            except OSError:
                return Arrival.LEFT
            if not data:
                self._has_ended = True
                return Arrival.READY if self._received else Arrival.LEFT
            self._received += data
            is_over = once
        return Arrival.READY

    def _wait_for_more(self) -> Arrival:
        if self._frame.wants_continue and not self._is_told_to_continue:
            self._is_told_to_continue = True
            try:
                self.send(_CONTINUE)
            except OSError:
                return Arrival.LEFT
        return Arrival.PART

    def end_request(self) -> None:
        """Drops the answered request; the bytes after it begin the next one."""
        del self._received[: self._frame.end]
        self._taken = 0
        self._frame = Frame(settings.MAX_BODY_BYTES)
        self._is_told_to_continue = False

    def drop_received(self) -> None:
        self._received.clear()
        self._taken = 0

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        """Returns received bytes of the request. Raises RequestCutOff if there are no more."""
        end = len(self._received) if self._frame.end is None else self._frame.end
        data = bytes(self._received[self._taken : min(self._taken + bufsize, end)])
        self._taken += len(data)
        if not data and not self._has_ended:
            # Waiting would let a slow client hold the thread for as long as it likes.
            raise RequestCutOff
        return data

    def recv_now(self, size: int) -> bytes:
        """Reads from the socket itself. Raises BlockingIOError if nothing has arrived."""
        return super().recv(size)

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
    parser: Any
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
