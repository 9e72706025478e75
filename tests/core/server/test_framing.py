"""Finding the end of a request that arrives in pieces."""

import pytest

from core.server.framing import Frame

MAX_BODY_BYTES = 100_000

WHOLE = [
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"\r\nGET / HTTP/1.1\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody",
    b"POST / HTTP/1.1\r\ncontent-length:0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nCONTENT-LENGTH: \t 2 \r\nX: y\r\n\r\n\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    (
        b"POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n"
        b"3\r\nabc\r\n0A; x=y\r\n0123456789\r\n0\r\n\r\n"
    ),
    (
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"1\r\na\r\n0\r\nTrailer: a\r\nOther: b\r\n\r\n"
    ),
]

NONSENSE = [
    b"GET / HTTP/1.1\nHost: a\n\n",
    b"POST / HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: -4\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: four\r\n\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    b"POST / HTTP/1.1\r\nExpect: a-miracle\r\nContent-Length: 4\r\n\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"0" * 10_000,
    b"G" * 10_000,
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200_000,
]

TOO_LARGE = [
    b"POST / HTTP/1.1\r\nContent-Length: 100001\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n30000\r\n" + b"x" * 0x30000,
    (
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        + (b"1;" + b"a" * 8_000 + b"\r\nx\r\n") * 3
    ),
    # A million of them would block the main thread for ten seconds.
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 4_000,
]


@pytest.mark.parametrize("request_bytes", WHOLE)
def test_a_request_is_ready_with_its_last_byte(request_bytes: bytes) -> None:
    frame, buffer = Frame(MAX_BODY_BYTES), bytearray()
    ready = []
    for byte in request_bytes:
        buffer.append(byte)
        ready.append(frame.look(buffer))

    assert ready == [False] * (len(request_bytes) - 1) + [True]
    assert frame.is_whole
    assert frame.end == len(request_bytes)


@pytest.mark.parametrize("request_bytes", WHOLE)
def test_following_bytes_do_not_belong_to_the_request(request_bytes: bytes) -> None:
    frame = Frame(MAX_BODY_BYTES)

    assert frame.look(bytearray(request_bytes + b"GET /next HTTP/1.1\r\n\r\n"))
    assert frame.end == len(request_bytes)


@pytest.mark.parametrize("request_bytes", NONSENSE)
def test_a_malformed_request_is_ready_and_has_no_end(request_bytes: bytes) -> None:
    frame = Frame(MAX_BODY_BYTES)

    assert frame.look(bytearray(request_bytes))
    assert not frame.is_whole
    assert not frame.is_too_large


@pytest.mark.parametrize("request_bytes", TOO_LARGE)
def test_a_body_that_is_too_large_is_not_waited_for(request_bytes: bytes) -> None:
    frame = Frame(MAX_BODY_BYTES)

    assert frame.look(bytearray(request_bytes))
    assert not frame.is_whole
    assert frame.is_too_large


def test_a_client_that_waits_for_100_continue_is_recognised() -> None:
    frame = Frame(MAX_BODY_BYTES)
    head = b"POST / HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 4\r\n\r\n"

    assert not frame.look(bytearray(head))
    assert frame.wants_continue


def test_an_http_1_0_client_gets_no_100_continue() -> None:
    frame = Frame(MAX_BODY_BYTES)
    head = b"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"

    assert not frame.look(bytearray(head))
    assert not frame.wants_continue


def test_a_large_body_may_come_in_chunks_of_a_line() -> None:
    frame = Frame(MAX_BODY_BYTES)
    chunks = (b"40\r\n" + b"x" * 64 + b"\r\n") * 1_500 + b"0\r\n\r\n"

    assert frame.look(bytearray(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks))
    assert frame.is_whole


def test_a_small_body_may_come_byte_by_byte() -> None:
    frame = Frame(MAX_BODY_BYTES)
    chunks = b"1\r\nx\r\n" * 3_000 + b"0\r\n\r\n"

    assert frame.look(bytearray(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks))
    assert frame.is_whole
