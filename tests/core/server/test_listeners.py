"""A node's port, shared by the sockets of its own web server only."""

import socket
from contextlib import closing

import pytest
from gunicorn.config import Config
from gunicorn.glogging import Logger

from core.server.listeners import listen, reserve
from tests.servers import free_port

HOST = "127.0.0.1"


def test_a_port_that_is_reserved_cannot_be_reserved_again() -> None:
    port = free_port()
    with closing(reserve(HOST, port)), pytest.raises(OSError, match="in use"):
        reserve(HOST, port)


def test_a_port_with_a_listener_cannot_be_reserved() -> None:
    with socket.create_server((HOST, 0), reuse_port=True) as server:
        port = server.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            reserve(HOST, port)


def test_a_reservation_ends_with_its_socket() -> None:
    port = free_port()
    reserve(HOST, port).close()

    reserve(HOST, port).close()


# gunicorn leaves closing its copies of the sockets to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")
def test_the_web_server_accepts_every_connection_on_the_reserved_port() -> None:
    port, config = free_port(), Config()
    with closing(reserve(HOST, port)):
        listeners = listen(HOST, port, count=2, cfg=config, log=Logger(config))
        callers = [socket.create_connection((HOST, port), timeout=10) for _ in range(20)]
        accepted = sum([accept_all(listener.sock) for listener in listeners])
        ends = [each.close() for each in [*callers, *listeners]]

    assert accepted == len(callers) == 20
    assert len(ends) == 22


def accept_all(listener: socket.socket) -> int:
    listener.setblocking(False)
    accepted = 0
    while True:
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return accepted
        accepted += 1
