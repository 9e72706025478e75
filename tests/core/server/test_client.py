"""A client's socket, which never blocks."""

import socket
from collections.abc import Iterator

import pytest

from core.server.client import Arrival, ClientSocket
from core.server.request_reader import BodyNotReceived

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
    assert served.reader.is_whole
    assert served.reader.body == b"body"


def test_a_part_of_a_request_is_kept(client: socket.socket, served: ClientSocket) -> None:
    client.sendall(REQUEST[:-1])
    assert served.is_readable_within(30)
    assert served.receive() is Arrival.PART
    client.sendall(REQUEST[-1:])
    assert served.is_readable_within(30)

    assert served.receive() is Arrival.READY
    assert served.reader.body == b"body"


def test_the_next_request_is_not_read_with_the_first(
    client: socket.socket, served: ClientSocket
) -> None:
    client.sendall(REQUEST + b"GET /next HTTP/1.1\r\n\r\n")
    served.is_readable_within(30)
    served.receive()
    assert served.reader.body == b"body"
    served.end_request()

    assert served.has_received
    assert served.receive() is Arrival.READY
    assert served.reader.request is not None
    assert served.reader.request.uri == "/next"
    assert served.has_received
    served.end_request()
    assert not served.has_received


def test_a_disconnected_client_has_left(client: socket.socket, served: ClientSocket) -> None:
    client.close()

    assert served.is_readable_within(30)
    assert served.receive() is Arrival.LEFT


def shut_down_after(client: socket.socket, served: ClientSocket, data: bytes) -> Arrival:
    client.sendall(data)
    client.shutdown(socket.SHUT_WR)
    while (arrival := served.receive()) is Arrival.PART:
        assert served.is_readable_within(30)
    return arrival


def test_a_body_that_is_cut_off_is_shorter_than_declared(
    client: socket.socket, served: ClientSocket
) -> None:
    assert shut_down_after(client, served, REQUEST[:-1]) is Arrival.READY
    assert served.reader.request is not None
    assert served.reader.refusal is None
    assert not served.reader.is_whole
    assert served.reader.open_body().read() == b"bod"


def test_a_chunked_body_that_is_cut_off_is_refused(
    client: socket.socket, served: ClientSocket
) -> None:
    head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"

    assert shut_down_after(client, served, head + b"4\r\nbody\r\n") is Arrival.READY
    assert served.reader.refusal is not None


def test_a_client_that_disconnects_in_its_head_has_left(
    client: socket.socket, served: ClientSocket
) -> None:
    assert shut_down_after(client, served, REQUEST[:20]) is Arrival.LEFT


def test_a_thread_reads_no_bytes_that_arrive_later(
    client: socket.socket, served: ClientSocket
) -> None:
    client.sendall(b"POST / HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n")
    served.is_readable_within(30)
    assert served.receive() is Arrival.READY
    assert served.reader.is_too_large
    client.sendall(b"x")
    assert served.is_readable_within(30)

    with pytest.raises(BodyNotReceived):
        served.reader.open_body().read(1)


def test_100_continue_is_sent_once(client: socket.socket, served: ClientSocket) -> None:
    client.sendall(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
    served.is_readable_within(30)
    assert served.receive() is Arrival.PART
    assert served.receive() is Arrival.PART

    assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.sendall(b"body")
    served.is_readable_within(30)
    assert served.receive() is Arrival.READY


def test_the_socket_never_blocks(served: ClientSocket) -> None:
    assert not served.getblocking()


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
