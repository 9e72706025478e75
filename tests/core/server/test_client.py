"""A client's socket, which never blocks."""

import socket
from collections.abc import Iterator

import pytest

from core.server.client import Arrival, ClientSocket, RequestCutOff

REQUEST = b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"
LARGE = b"x" * 4_000_000


@pytest.fixture
def client() -> Iterator[socket.socket]:
    """Yields the client's end of the connection to ``served``."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname(), timeout=30) as client,
    ):
        _accepted[client], _ = listener.accept()
        yield client


_accepted: dict[socket.socket, socket.socket] = {}


@pytest.fixture
def served(client: socket.socket) -> Iterator[ClientSocket]:
    with ClientSocket(_accepted.pop(client)) as served:
        yield served


def test_a_whole_request_is_ready_at_once(client: socket.socket, served: ClientSocket) -> None:
    client.sendall(REQUEST)

    assert served.is_readable_within(30)
    assert served.receive() is Arrival.READY
    assert served.recv(4) == b"POST"
    assert served.recv(1000) == REQUEST[4:]
    assert served.is_request_whole


def test_a_part_of_a_request_is_kept(client: socket.socket, served: ClientSocket) -> None:
    client.sendall(REQUEST[:-1])
    assert served.is_readable_within(30)
    assert served.receive() is Arrival.PART
    client.sendall(REQUEST[-1:])
    assert served.is_readable_within(30)

    assert served.receive() is Arrival.READY
    assert served.recv(1000) == REQUEST


def test_the_next_request_is_not_read_with_the_first(
    client: socket.socket, served: ClientSocket
) -> None:
    client.sendall(REQUEST + b"GET /next HTTP/1.1\r\n\r\n")
    served.is_readable_within(30)
    served.receive()
    assert served.recv(1000) == REQUEST
    served.end_request()

    assert served.has_received
    assert served.receive() is Arrival.READY
    assert served.recv(1000) == b"GET /next HTTP/1.1\r\n\r\n"


def test_a_disconnected_client_has_left(client: socket.socket, served: ClientSocket) -> None:
    client.close()

    assert served.is_readable_within(30)
    assert served.receive() is Arrival.LEFT


def test_a_truncated_request_can_be_refused(client: socket.socket, served: ClientSocket) -> None:
    client.sendall(REQUEST[:-1])
    client.shutdown(socket.SHUT_WR)
    served.is_readable_within(30)
    while served.receive() is Arrival.PART:
        assert served.is_readable_within(30)

    assert not served.is_request_whole
    assert served.recv(1000) == REQUEST[:-1]
    assert served.recv(1000) == b""


def test_reading_past_the_received_bytes_raises(
    client: socket.socket, served: ClientSocket
) -> None:
    client.sendall(b"POST / HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n")
    served.is_readable_within(30)
    assert served.receive() is Arrival.READY
    assert served.is_request_too_large
    served.recv(1000)

    with pytest.raises(RequestCutOff):
        served.recv(1000)


def test_a_thread_reads_no_bytes_that_arrive_later(
    client: socket.socket, served: ClientSocket
) -> None:
    client.sendall(b"POST / HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n")
    served.is_readable_within(30)
    served.receive()
    served.recv(1000)
    client.sendall(b"x")
    assert served.is_readable_within(30)

    with pytest.raises(RequestCutOff):
        served.recv(1000)


def test_100_continue_is_sent_once(client: socket.socket, served: ClientSocket) -> None:
    client.sendall(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
    served.is_readable_within(30)
    assert served.receive() is Arrival.PART
    assert served.receive() is Arrival.PART

    assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.sendall(b"body")
    served.is_readable_within(30)
    assert served.receive() is Arrival.READY


def test_reading_now_does_not_wait(client: socket.socket, served: ClientSocket) -> None:
    with pytest.raises(BlockingIOError):
        served.recv_now(100)


def test_switching_to_blocking_mode_has_no_effect(
    client: socket.socket, served: ClientSocket
) -> None:
    served.setblocking(True)

    assert not socket.socket.getblocking(served)


def test_a_large_reply_does_not_wait_for_its_reader(
    client: socket.socket, served: ClientSocket
) -> None:
    served.sendall(LARGE)
    served.sendall(b"end")
    assert served.has_unsent
    received = bytearray()
    while len(received) < len(LARGE) + 3:
        served.send_rest()
        received += client.recv(1_000_000)

    assert received == LARGE + b"end"
    assert served.send_rest()
    assert not served.has_unsent
    assert served.buffered_bytes == 0
