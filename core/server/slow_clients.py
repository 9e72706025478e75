"""Clients for which no thread waits: they send or read slowly, or have still to close."""

import selectors
import socket
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

from gunicorn import util

from core.metrics.instruments import CLIENTS_GIVEN_UP
from core.server.client import Arrival, ClientSocket, Connection

_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
    b"Content-Length: 0\r\n\r\n"
)
LINGER_SECONDS = 2.0
_DISCARDED_BYTES = 64 * 1024


class SlowClients:
    """Reads the rest of requests and sends the rest of replies, in the main thread.

    Each client has ``CLIENT_TIMEOUT`` seconds. All buffers hold at most ``max_bytes`` in total, and
    a request that was gathered here counts until it is answered. Beyond that, the client that has
    been waiting longest is given up.
    """

    def __init__(
        self,
        poller: Any,
        *,
        max_bytes: int,
        on_ready: Callable[[Connection], None],
        on_end: Callable[[Connection, bool], None],
    ) -> None:
        """``on_ready`` gets a connection whose request can be served. ``on_end`` gets one whose
        client has its reply or was given up, and whether the connection may be kept alive.
        """
        self._poller = poller
        self._max_bytes = max_bytes
        self._on_ready = on_ready
        self._on_end = on_end
        # Both map connections to the bytes they hold, in the order of their timeouts.
        self._senders: dict[Connection, int] = {}
        self._readers: dict[Connection, int] = {}
        self._keeps_alive: dict[Connection, bool] = {}
        # Connections with a whole request, until it is answered.
        self._ready: dict[Connection, int] = {}
        self._bytes = 0

    def wait_for_request(self, connection: Connection) -> None:
        """Takes a connection on which a part of a request has arrived."""
        connection.set_client_timeout()
        self._senders[connection] = 0
        self._poller.register(
            connection.sock, selectors.EVENT_READ, partial(self._read_more, connection)
        )
        self._count(self._senders, connection)

    def wait_for_reader(self, connection: Connection, *, keeps_alive: bool) -> None:
        """Takes a connection on which a part of the reply has been sent."""
        connection.set_client_timeout()
        self._readers[connection] = 0
        self._keeps_alive[connection] = keeps_alive
        self._poller.register(
            connection.sock, selectors.EVENT_WRITE, partial(self._send_more, connection)
        )
        self._count(self._readers, connection)

    def give_up_late(self, now: float) -> None:
        while self._senders and (first := next(iter(self._senders))).timeout <= now:
            self._give_up_sender(first, "slow-request")
        while self._readers and (first := next(iter(self._readers))).timeout <= now:
            self._give_up_reader(first, "slow-reader")

    def note_answer(self, connection: Connection) -> None:
        """Frees the room that the connection's request took."""
        self._bytes -= self._ready.pop(connection, 0)

    def _read_more(self, connection: Connection, _sock: object) -> None:
        if connection not in self._senders:
            # Given up to make room for another client in the same round of events.
            return
        arrival = connection.sock.receive(once=True)
        if arrival is Arrival.LEFT:
            self._forget(self._senders, connection)
            self._on_end(connection, False)
            return
        self._count(self._senders, connection)
        if arrival is Arrival.READY and connection in self._senders:
            held = self._senders[connection]
            self._forget(self._senders, connection)
            self._ready[connection] = held
            self._bytes += held
            self._on_ready(connection)

    def _send_more(self, connection: Connection, _sock: object) -> None:
        if connection not in self._readers:
            return
        try:
            is_sent = connection.sock.send_rest()
        except OSError:
            self._end_reader(connection)
            return
        if is_sent:
            keeps_alive = self._keeps_alive[connection]
            self._forget(self._readers, connection)
            self._on_end(connection, keeps_alive)
        else:
            self._count(self._readers, connection)

    def _count(self, clients: dict[Connection, int], connection: Connection) -> None:
        held = connection.sock.buffered_bytes
        self._bytes += held - clients[connection]
        clients[connection] = held
        while self._bytes > self._max_bytes and (self._senders or self._readers):
            self._give_up_oldest()

    def _give_up_oldest(self) -> None:
        firsts = [next(iter(each)) for each in (self._senders, self._readers) if each]
        oldest = min(firsts, key=lambda each: each.timeout)
        if oldest in self._senders:
            self._give_up_sender(oldest, "no-room")
        else:
            self._give_up_reader(oldest, "no-room")

    def _give_up_sender(self, connection: Connection, reason: str) -> None:
        self._forget(self._senders, connection)
        connection.sock.drop_received()
        CLIENTS_GIVEN_UP.labels(reason).inc()
        try:
            if reason == "no-room":
                connection.sock.send(_BUSY)
            else:
                status = HTTPStatus.REQUEST_TIMEOUT
                util.write_error(connection.sock, status, status.phrase, "")
        except OSError:
            # The client has disconnected.
            pass
        self._on_end(connection, False)

    def _give_up_reader(self, connection: Connection, reason: str) -> None:
        CLIENTS_GIVEN_UP.labels(reason).inc()
        self._end_reader(connection)

    def _end_reader(self, connection: Connection) -> None:
        self._forget(self._readers, connection)
        connection.sock.drop_unsent()
        self._on_end(connection, False)

    def _forget(self, clients: dict[Connection, int], connection: Connection) -> None:
        self._bytes -= clients.pop(connection)
        self._keeps_alive.pop(connection, None)
        self._poller.unregister(connection.sock)


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
            has_ended = not client.recv(_DISCARDED_BYTES)
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
