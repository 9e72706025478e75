"""Slow clients, which the main thread serves."""

import gc
import selectors
import socket
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from gunicorn.config import Config

from core.server.client import Arrival, Connection
from core.server.slow_clients import SlowClients

MAX_BYTES = 200_000
HEAD = b"POST / HTTP/1.1\r\nContent-Length: 60000\r\n\r\n"
WHOLE = HEAD + b"x" * 60_000
ASKS = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"


class Server:
    """A poller with clients, which records ready and ended connections."""

    def __init__(self) -> None:
        self.poller = selectors.DefaultSelector()
        self.ready: list[Connection] = []
        self.ended: list[Connection] = []
        self.slow_clients = SlowClients(
            self.poller,
            max_bytes=MAX_BYTES,
            on_ready=self.ready.append,
            on_end=lambda connection, _: self.ended.append(connection),
        )
        self.stack = ExitStack()
        self._listener = self.stack.enter_context(socket.create_server(("127.0.0.1", 0)))

    def connect(self) -> tuple[socket.socket, Connection]:
        client = self.stack.enter_context(
            socket.create_connection(self._listener.getsockname(), timeout=30)
        )
        accepted, address = self._listener.accept()
        connection = Connection(Config(), accepted, address, address, linger=lambda _: None)
        self.stack.callback(connection.sock.close)
        return client, connection

    def connect_sender(self, start: bytes) -> tuple[socket.socket, Connection]:
        client, connection = self.connect()
        client.sendall(start)
        assert connection.sock.is_readable_within(30)
        assert connection.sock.receive() is Arrival.PART
        self.slow_clients.wait_for_request(connection)
        return client, connection

    def look(self) -> None:
        """One turn of a worker's main loop: the poller names some, and each is seen to."""
        events: list[tuple[Any, int]] = self.poller.select(0)
        for key, _ in events:
            key.data(key.fileobj)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    with server.stack, server.poller:
        yield server


def test_a_client_given_up_may_have_an_event_in_the_same_round(server: Server) -> None:
    clients = [server.connect_sender(HEAD)[0] for _ in range(8)]
    # The poller reports the oldest last, after the clients that it makes room for.
    for client in reversed(clients):
        client.sendall(b"x" * 40_000)
    server.look()

    assert len(server.ended) >= 2
    assert not server.ready


def test_a_client_given_up_for_room_gets_503(server: Server) -> None:
    client, connection = server.connect_sender(HEAD)
    for _ in range(4):
        server.connect_sender(HEAD + b"x" * 50_000)

    assert server.ended[0] is connection
    answer = client.recv(1000)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nRetry-After: 1\r\n" in answer
    assert connection.sock.buffered_bytes == 0


def test_whole_requests_that_wait_for_a_thread_take_room(server: Server) -> None:
    for _ in range(10):
        client, _ = server.connect_sender(HEAD)
        client.sendall(WHOLE[len(HEAD) :])
        while server.poller.get_map():
            server.look()

    held = sum(connection.sock.buffered_bytes for connection in server.ready)
    assert len(server.ready) == 3
    assert held <= MAX_BYTES
    assert len(server.ended) == 7


def test_an_answered_request_takes_no_room(server: Server) -> None:
    for _ in range(10):
        client, connection = server.connect_sender(HEAD)
        client.sendall(WHOLE[len(HEAD) :])
        while server.poller.get_map():
            server.look()
        server.slow_clients.note_answer(connection)

    assert len(server.ready) == 10


def test_a_reader_that_was_given_up_is_not_kept(server: Server) -> None:
    _, connection = server.connect()
    connection.sock.sendall(b"x" * 100_000 + b"x" * 10_000_000)
    server.slow_clients.wait_for_reader(connection, keeps_alive=True)

    assert server.ended == [connection]
    gone = weakref.ref(connection)
    server.ended.clear()
    server.stack.close()
    del connection
    gc.collect()
    assert gone() is None


def test_a_client_that_disconnects_before_100_continue_has_left(server: Server) -> None:
    client, connection = server.connect_sender(ASKS[:-2])
    client.sendall(ASKS[-2:])
    assert connection.sock.is_readable_within(30)
    # Sending fails from now on, as after a reset.
    connection.sock.shutdown(socket.SHUT_WR)
    server.look()

    assert server.ended == [connection]


def test_a_client_that_sends_much_does_not_block_the_others(server: Server) -> None:
    client, connection = server.connect_sender(b"POST / HTTP/1.1\r\nContent-Length: 190000\r\n\r\n")
    client.sendall(b"x" * 150_000)
    server.look()
    first = connection.sock.buffered_bytes
    while connection.sock.buffered_bytes < 150_000:
        server.look()

    assert first < 150_000
