"""A client's socket waits for nobody beyond its deadlines, and sends in as few pieces as it can."""

import socket
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from config.web.client import ClientSocket, ClientTooSlow

LARGE = b"x" * 4_000_000


@pytest.fixture
def client() -> Iterator[socket.socket]:
    """The other end, which the fixture ``served`` talks to."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname(), timeout=30) as client,
    ):
        _accepted[client], _ = listener.accept()
        yield client


_accepted: dict[socket.socket, socket.socket] = {}


@pytest.fixture
def served(client: socket.socket, settings: Any) -> Iterator[ClientSocket]:
    settings.CLIENT_TIMEOUT_SECONDS = 30
    with ClientSocket(_accepted.pop(client)) as served:
        served.begin_request()
        yield served


def test_what_has_come_is_read_at_once(client: socket.socket, served: ClientSocket) -> None:
    client.sendall(b"GET / HTTP/1.1\r\n")

    assert served.is_readable_within(30)
    assert served.recv(3) == b"GET"
    assert served.recv(100) == b" / HTTP/1.1\r\n"


def test_what_comes_later_is_waited_for(client: socket.socket, served: ClientSocket) -> None:
    threading.Timer(0.2, client.sendall, [b"late"]).start()

    assert served.recv(100) == b"late"


def test_a_client_that_has_left_has_nothing_more(
    client: socket.socket, served: ClientSocket
) -> None:
    client.close()

    assert served.is_readable_within(30)
    assert served.recv(100) == b""


def test_a_request_that_does_not_end_in_time_is_given_up(
    client: socket.socket, served: ClientSocket, settings: Any
) -> None:
    settings.CLIENT_TIMEOUT_SECONDS = 0.05
    served.begin_request()
    client.sendall(b"G")

    assert served.recv(100) == b"G"
    with pytest.raises(ClientTooSlow):
        served.recv(100)


def test_a_shorter_limit_is_a_time_out(client: socket.socket, served: ClientSocket) -> None:
    served.settimeout(0.05)

    with pytest.raises(TimeoutError):
        served.recv(100)


def test_reading_now_does_not_wait(client: socket.socket, served: ClientSocket) -> None:
    with pytest.raises(BlockingIOError):
        served.recv_now(100)


def test_switching_to_waiting_has_no_effect(client: socket.socket, served: ClientSocket) -> None:
    served.setblocking(True)

    assert not socket.socket.getblocking(served)


def test_headers_leave_with_the_body(client: socket.socket, served: ClientSocket) -> None:
    served.hold_headers()
    served.sendall(b"headers\r\n\r\n")
    client.settimeout(0.1)
    with pytest.raises(TimeoutError):
        client.recv(100)

    served.sendall(b"body")

    assert client.recv(100) == b"headers\r\n\r\nbody"
    served.sendall(b"more")
    assert client.recv(100) == b"more"


def test_an_interim_reply_is_not_held(client: socket.socket, served: ClientSocket) -> None:
    served.hold_headers()
    served.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    served.sendall(b"headers ")
    served.sendall(b"body")
    assert client.recv(100) == b"headers body"


def test_headers_without_a_body_leave_too(client: socket.socket, served: ClientSocket) -> None:
    served.hold_headers()
    served.sendall(b"headers\r\n\r\n")
    served.send_held()

    assert client.recv(100) == b"headers\r\n\r\n"


def test_nothing_is_held_for_the_next_reply(client: socket.socket, served: ClientSocket) -> None:
    served.hold_headers()
    served.send_held()
    served.sendall(b"at once")

    assert client.recv(100) == b"at once"


def test_a_closed_socket_holds_nothing_back(served: ClientSocket) -> None:
    served.hold_headers()
    served.sendall(b"headers")
    served.close()

    served.send_held()


def test_a_large_reply_waits_for_its_reader(client: socket.socket, served: ClientSocket) -> None:
    received = bytearray()

    def read() -> None:
        while len(received) < len(LARGE):
            received.extend(client.recv(1_000_000))

    reader = threading.Thread(target=read)
    reader.start()
    served.sendall(LARGE)
    reader.join(30)

    assert received == LARGE


def test_a_reply_that_nobody_takes_is_given_up(
    client: socket.socket, served: ClientSocket, settings: Any
) -> None:
    settings.CLIENT_TIMEOUT_SECONDS = 0.1

    with pytest.raises(TimeoutError):
        served.sendall(LARGE)


def test_a_file_follows_its_headers(client: socket.socket, served: ClientSocket) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"content")
        file.seek(0)
        served.hold_headers()
        served.sendall(b"headers ")
        assert served.sendfile(file) == 7

    received = b""
    while len(received) < 15:
        received += client.recv(100)
    assert received == b"headers content"
