"""A connection is kept exactly when the reply says so, however much of a body was read."""

import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from http.client import HTTPResponse

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.core.server.wsgi_server import WsgiServer, wsgi_server
from tests.examples import examples

KIB, MIB = 1024, 1024 * 1024
MAX_BODY_BYTES = 2 * MIB
# What follows an unread body must not be found in it.
FILLER = b"GET /?0 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
# The second has a field that is dropped.
HEADS = ["Host: a\r\n", "Host: a\r\nX_A: 1\r\n"]


@dataclass(frozen=True)
class Sent:
    """A request with a body, and how many of its bytes the application reads."""

    size: int
    read_bytes: int = 0
    method: str = "POST"
    path: str = "/"
    version: str = "HTTP/1.1"
    head: str = HEADS[0]
    chunk_size: int | None = None
    """``None`` declares the length."""
    trailers: str = ""
    piece_bytes: int = 64 * KIB
    """How much is sent at a time."""

    def bytes(self) -> bytes:
        body = (FILLER * (self.size // len(FILLER) + 1))[: self.size]
        framing = f"Content-Length: {self.size}"
        if self.chunk_size is not None:
            framing = "Transfer-Encoding: chunked"
            starts = range(0, self.size, self.chunk_size)
            chunks = (body[start : start + self.chunk_size] for start in starts)
            lines = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
            body = lines + f"0\r\n{self.trailers}\r\n".encode()
        line = f"{self.method} {self.path}?{self.read_bytes} {self.version}\r\n"
        return f"{line}{self.head}{framing}\r\n\r\n".encode() + body


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WsgiServer]:
    directory = tmp_path_factory.mktemp("data")
    with wsgi_server("tests.core.server.reading:application", directory) as server:
        yield server


@dataclass(frozen=True)
class Got:
    status: int
    keeps_alive: bool
    number: int | None
    """Of the request, as the application counts; ``None`` in a reply without it."""


def ask(client: socket.socket, sent: Sent) -> Got:
    stream = sent.bytes()
    # The server may have answered and closed before it has all.
    with suppress(ConnectionError):
        for start in range(0, len(stream), sent.piece_bytes):
            client.sendall(stream[start : start + sent.piece_bytes])
    with closing(HTTPResponse(client, method=sent.method)) as reply:
        reply.begin()
        answer = reply.read()
        number = int(answer) if reply.status == 200 and answer else None
        return Got(reply.status, not reply.will_close, number)


def ask_twice(server: WsgiServer, sent: Sent) -> tuple[Got, Got | None]:
    """The second reply comes over the first connection; ``None`` if it was announced to close."""
    with server.connect() as client:
        first = ask(client, sent)
        if first.keeps_alive:
            return first, ask(client, Sent(0, head=sent.head))
        assert received_from(client) == b""
        return first, None


def send_endlessly(client: socket.socket, piece: bytes) -> None:
    while True:
        client.sendall(piece)


def received_from(client: socket.socket) -> bytes:
    """All bytes until the server closes the connection."""
    received = b""
    # The server waits two seconds for the end of a body that nobody reads.
    with suppress(ConnectionResetError):
        while data := client.recv(65_536):
            received += data
    return received


def count_of(server: WsgiServer) -> int:
    """How many requests the application has had, this one included."""
    with server.connect() as client:
        number = ask(client, Sent(0)).number
    assert number is not None
    return number


_sizes = st.one_of(
    st.builds(
        lambda boundary, offset: max(boundary + offset, 0),
        st.sampled_from([0, 8 * KIB, 64 * KIB, MIB, MAX_BODY_BYTES, MAX_BODY_BYTES + 64 * KIB]),
        st.integers(-300, 300),
    ),
    st.integers(0, 4 * MIB),
)


def requests_of(sizes: st.SearchStrategy[int], versions: list[str]) -> st.SearchStrategy[Sent]:
    return st.builds(
        lambda size, part, **others: Sent(size, read_bytes=int(size * part), **others),
        sizes,
        st.sampled_from([0, 0.1, 0.5, 1]),
        method=st.sampled_from(["POST", "PUT", "GET", "HEAD"]),
        # The main thread serves small requests to hooks.
        path=st.sampled_from(["/", "/chunked", "/hook/"]),
        version=st.sampled_from(versions),
        head=st.sampled_from(HEADS).flatmap(
            lambda head: st.sampled_from(["", "Connection: keep-alive\r\n"]).map(head.__add__)
        ),
        chunk_size=st.sampled_from([None, None, 4 * KIB, 64 * KIB, 8 * MIB]),
        trailers=st.sampled_from(["", "X: y\r\n"]),
        piece_bytes=st.sampled_from([100 * KIB, 10 * MIB]),
    ).filter(lambda sent: sent.chunk_size is None or sent.version == "HTTP/1.1")


@settings(deadline=None, max_examples=examples(150))
@given(requests_of(_sizes, ["HTTP/1.1", "HTTP/1.1", "HTTP/1.0"]))
@example(Sent(64 * KIB))
@example(Sent(100_000, head=HEADS[1]))
@example(Sent(100_000, chunk_size=4 * KIB, trailers="X: y\r\n"))
@example(Sent(3 * MIB))
@example(Sent(3 * MIB, chunk_size=64 * KIB))
def test_a_connection_that_a_reply_keeps_answers_the_next_request(
    server: WsgiServer, sent: Sent
) -> None:
    before = count_of(server)

    first, second = ask_twice(server, sent)

    assert first.status == 200 or (first.status == 413 and sent.size > MAX_BODY_BYTES)
    assert second is None or second.number == before + 2
    # Nothing else was taken for a request.
    assert count_of(server) == before + (2 if second is None else 3)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        requests_of(st.integers(0, 200 * KIB) | st.just(MAX_BODY_BYTES + 100 * KIB), ["HTTP/1.1"]),
        min_size=2,
        max_size=5,
    ),
    st.sampled_from([KIB, 10 * KIB, 300 * KIB]),
)
def test_requests_that_are_sent_at_once_are_answered_until_one_is_too_large(
    server: WsgiServer, requests: list[Sent], piece_bytes: int
) -> None:
    before = count_of(server)
    are_too_large = [sent.size > MAX_BODY_BYTES for sent in requests]
    answered = [*are_too_large, True].index(True) + 1
    stream = b"".join(sent.bytes() for sent in requests) + FILLER
    with server.connect() as client:
        with suppress(ConnectionError):
            for start in range(0, len(stream), piece_bytes):
                client.sendall(stream[start : start + piece_bytes])
        received = received_from(client)

    assert received.count(b"HTTP/1.1 ") == answered
    assert received.count(b"\r\nConnection: close\r\n") == 1
    assert count_of(server) == before + answered + 1


@pytest.mark.parametrize(
    "sent",
    [
        Sent(64 * KIB),
        Sent(100_000, head=HEADS[1]),
        Sent(MAX_BODY_BYTES, read_bytes=MIB),
        Sent(MAX_BODY_BYTES, chunk_size=64 * KIB),
        Sent(100_000, chunk_size=4 * KIB, trailers="X: y\r\n", method="HEAD"),
        Sent(100_000, version="HTTP/1.0", head="Connection: keep-alive\r\n"),
    ],
)
def test_an_unread_body_of_usual_size_does_not_end_the_connection(
    server: WsgiServer, sent: Sent
) -> None:
    _, second = ask_twice(server, sent)

    assert second is not None


@pytest.mark.parametrize("sent", [Sent(3 * MIB), Sent(3 * MIB, chunk_size=64 * KIB)])
def test_a_body_that_is_not_waited_for_ends_the_connection(server: WsgiServer, sent: Sent) -> None:
    first, second = ask_twice(server, sent)

    assert first.status == 200
    assert second is None


def test_requests_that_follow_unread_bodies_at_once_are_answered(server: WsgiServer) -> None:
    before = count_of(server)
    unread = Sent(100_000).bytes() + Sent(100_000, chunk_size=4 * KIB).bytes()
    with server.connect() as client:
        client.sendall(unread * 3 + FILLER)
        received = received_from(client)

    assert received.count(b"HTTP/1.1 200 ") == 7
    assert received.endswith(str(before + 7).encode())


def test_nothing_that_follows_a_body_that_is_too_large_is_a_request(server: WsgiServer) -> None:
    before = count_of(server)
    with server.connect() as client:
        client.sendall(Sent(3 * MIB).bytes() + FILLER)
        received = received_from(client)

    assert received.count(b"HTTP/1.1 ") == 1
    assert count_of(server) == before + 2


@pytest.mark.parametrize("piece", [b"x", b"x" * 64 * KIB])
def test_a_client_that_keeps_sending_a_refused_body_is_cut_off(
    server: WsgiServer, piece: bytes
) -> None:
    before = count_of(server)
    with server.connect() as client:
        client.sendall(f"POST / HTTP/1.1\r\nContent-Length: {10**12}\r\n\r\n".encode())
        reply = client.recv(4096)
        with pytest.raises(ConnectionError):
            send_endlessly(client, piece)

    assert reply.startswith(b"HTTP/1.1 200 ")
    assert b"\r\nConnection: close\r\n" in reply
    assert count_of(server) == before + 2


def test_a_reply_to_a_request_that_is_cut_off_ends_the_connection(server: WsgiServer) -> None:
    with server.connect() as client:
        client.sendall(Sent(100_000).bytes()[:-1])
        client.shutdown(socket.SHUT_WR)
        received = received_from(client)

    assert received.startswith(b"HTTP/1.1 200 ")
    assert b"\r\nConnection: close\r\n" in received


@pytest.mark.parametrize(
    "chunks",
    [b'3;x="\r\nabc\r\n0\r\n\r\n', b"3\r\nabc\r\n0\r\nX: y\nZ: z\r\n\r\n"],
)
def test_an_unread_body_that_is_malformed_is_refused(server: WsgiServer, chunks: bytes) -> None:
    before = count_of(server)
    with server.connect() as client:
        client.sendall(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + FILLER)
        received = received_from(client)

    assert received.startswith(b"HTTP/1.1 400 ")
    assert received.count(b"HTTP/1.1 ") == 1
    assert b"\r\nConnection: close\r\n" in received
    assert count_of(server) == before + 1


@pytest.mark.parametrize("size", [4, 3 * MIB])
def test_a_client_is_not_asked_for_a_body_that_is_here_or_refused(
    server: WsgiServer, size: int
) -> None:
    head = f"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: {size}\r\n"
    with server.connect() as client:
        client.sendall(f"{head}Connection: close\r\n\r\n....".encode())
        received = received_from(client)

    assert received.startswith(b"HTTP/1.1 200 ")
    assert received.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "fields",
    [
        "Connection: Close, X",
        "Connection: x ,\tCLOSE",
        "Connection: keep-alive, close",
        "Connection: ,close,",
        "Connection: X\r\nconnection: close",
        "Connection: keep-alive\r\nConnection: close",
        "Connection:close\r\nConnection: keep-alive",
    ],
)
def test_a_client_may_ask_in_a_list_for_the_connection_to_be_closed(
    server: WsgiServer, fields: str
) -> None:
    first, second = ask_twice(server, Sent(4, head=f"Host: a\r\n{fields}\r\n"))

    assert first.status == 200
    assert second is None


@pytest.mark.parametrize(
    "fields", ["Connection: keep-alive, X", "Connection: close-not", "Connection: X\r\nX: close"]
)
def test_other_options_do_not_end_the_connection(server: WsgiServer, fields: str) -> None:
    _, second = ask_twice(server, Sent(4, head=f"Host: a\r\n{fields}\r\n"))

    assert second is not None
