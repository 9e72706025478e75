"""Connections that are closed only after their clients have read the reply."""

import selectors
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from core.server.client import ClientSocket, Connection

LINGER_SECONDS = 2.0
_DISCARDED_BYTES = 64 * 1024


class LingeringConnections:
    """Waits in the poller for clients to close, for two seconds at most.

    Data that arrives at a closed socket resets the connection, and the client may lose the reply.
    gunicorn waits for that too, but serves nobody else meanwhile.
    """

    def __init__(self, poller: Any, *, on_end: Callable[[Connection], None]) -> None:
        """``on_end`` closes a connection that has lingered."""
        self._poller = poller
        self._on_end = on_end
        # In the order of their timeouts.
        self._connections: dict[Connection, None] = {}

    def add(self, connection: Connection) -> bool:
        """Returns false if the client has already gone, and the connection is closed."""
        client = connection.sock
        # The parser holds the request's body, which need not stay in memory.
        connection.parser = None
        client.drop_received()
        try:
            client.shutdown(socket.SHUT_WR)
        except OSError:
            client.close()
            return False
        connection.timeout = time.monotonic() + LINGER_SECONDS
        self._connections[connection] = None
        self._poller.register(client, selectors.EVENT_READ, partial(self._discard, connection))
        return True

    def end_expired(self, now: float) -> None:
        while self._connections and (first := next(iter(self._connections))).timeout <= now:
            self._end(first)

    def _discard(self, connection: Connection, client: ClientSocket) -> None:
        try:
            has_ended = not client.recv_now(_DISCARDED_BYTES)
        except BlockingIOError:
            return
        except OSError:
            has_ended = True
        if has_ended:
            self._end(connection)

    def _end(self, connection: Connection) -> None:
        del self._connections[connection]
        self._poller.unregister(connection.sock)
        self._on_end(connection)
