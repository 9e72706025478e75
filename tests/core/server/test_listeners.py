"""A node's port, shared by the sockets of its own web server only."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from core.server.listeners import reserve
from tests.servers import free_port

HOST = "127.0.0.1"


@contextmanager
def reserved(port: int, *, count: int = 2) -> Iterator[list[socket.socket]]:
    sockets = reserve(HOST, port, count=count)
    try:
        yield sockets
    finally:
        for each in sockets:
            each.close()


def test_a_port_that_is_reserved_cannot_be_reserved_again() -> None:
    port = free_port()
    with reserved(port), pytest.raises(OSError, match="in use"):
        reserve(HOST, port, count=2)


def test_a_port_with_a_listener_cannot_be_reserved() -> None:
    with socket.create_server((HOST, 0), reuse_port=True) as server:
        port = server.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            reserve(HOST, port, count=2)


def test_a_reserved_port_refuses_connections_until_its_sockets_listen() -> None:
    port = free_port()
    with reserved(port) as sockets:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HOST, port), timeout=10)
        sockets[0].listen()
        caller = socket.create_connection((HOST, port), timeout=10)
        caller.close()


def test_a_reservation_ends_with_its_sockets() -> None:
    port = free_port()
    with reserved(port):
        pass
    with reserved(port):
        pass


def test_the_sockets_of_a_port_accept_every_connection() -> None:
    port = free_port()
    with reserved(port) as listeners:
        for each in listeners:
            each.listen(64)
        callers = [socket.create_connection((HOST, port), timeout=10) for _ in range(20)]
        accepted = [accept_all(listener) for listener in listeners]
        ends = [each.close() for each in callers]

    assert sum(accepted) == len(ends) == 20
    # The kernel spreads them.
    assert min(accepted) > 0


def accept_all(listener: socket.socket) -> int:
    listener.setblocking(False)
    accepted = 0
    while True:
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return accepted
        accepted += 1
