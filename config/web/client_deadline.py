"""A request arrives within ``CLIENT_TIMEOUT`` seconds, and its reply is taken within as many."""

import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from gunicorn.http.parser import RequestParser
from gunicorn.http.unreader import SocketUnreader
from gunicorn.workers.gthread import TConn


class ClientTooSlow(BaseException):
    """Headers and body did not arrive in time.

    No ``Exception``: whoever reads a body on the way down takes those for a client that has left,
    and this one is still there to be told.
    """


class DeadlineUnreader(SocketUnreader):
    """Reads a socket up to a deadline for the whole request, however small its pieces are."""

    def __init__(self, sock: Any) -> None:
        super().__init__(sock)
        self._deadline = 0.0

    def start(self) -> None:
        """A request begins."""
        self._deadline = time.monotonic() + settings.CLIENT_TIMEOUT_SECONDS
        self.sock.settimeout(settings.CLIENT_TIMEOUT_SECONDS)

    def chunk(self, size_hint: int | None = None) -> bytes:
        """Raises ClientTooSlow; and TimeoutError at the socket's own limit, where that is less."""
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise ClientTooSlow
        limit = self.sock.gettimeout()
        if limit is not None and limit < remaining:
            return self._receive(size_hint)
        self.sock.settimeout(remaining)
        try:
            return self._receive(size_hint)
        except TimeoutError:
            raise ClientTooSlow from None
        finally:
            # For the reply, which is sent within this time or not at all.
            self.sock.settimeout(settings.CLIENT_TIMEOUT_SECONDS)

    def _receive(self, size_hint: int | None) -> bytes:
        data: bytes = super().chunk(size_hint)
        return data


class Connection(TConn):
    """A client's connection."""

    parser: Any

    def __init__(self, *args: Any, linger: Callable[["Connection"], None]) -> None:
        """``linger`` ends it as soon as its client has, without waiting."""
        super().__init__(*args)
        self._linger = linger

    def init(self) -> None:
        """Called before each request."""
        if self.parser is None:
            self.parser = RequestParser(self.cfg, self.sock, self.client)
            self.parser.unreader = DeadlineUnreader(self.sock)
        super().init()
        self.parser.unreader.start()

    def close(self, graceful: bool = False) -> None:
        if graceful:
            self._linger(self)
        else:
            super().close()
