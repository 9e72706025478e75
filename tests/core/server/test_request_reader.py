"""Finding the end of a request that arrives in pieces."""

import sys
from collections import Counter

import pytest

from core.server.request_reader import BodyNotReceived, RequestReader

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
        b"3\r\nabc\r\n0A;x=y\r\n0123456789\r\n0\r\n\r\n"
    ),
    (
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"1\r\na\r\n0\r\nX-Trailer: a\r\nOther: b\r\n\r\n"
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
    b"POST / HTTP/1.1\r\nContent-Length: 1000000000000000000\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: " + b"0" * 5_000 + b"4\r\n\r\nbody",
    b"G" * 10_000,
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200_000,
]

TOO_LARGE = [
    b"POST / HTTP/1.1\r\nContent-Length: 100001\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 999999999999999999\r\n\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"0" * 20_000,
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n30000\r\n" + b"x" * 0x30000,
    (
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        + (b"1;" + b"a" * 8_000 + b"\r\nx\r\n") * 3
    ),
    # A million of them would block the main thread for ten seconds.
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 4_000,
]


CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"


def read(stream: bytes) -> tuple[RequestReader, bytearray]:
    """The reader, and what it leaves."""
    reader, buffer = RequestReader(MAX_BODY_BYTES), bytearray(stream)
    assert reader.take(buffer) is reader.is_ready
    return reader, buffer


@pytest.mark.parametrize("request_bytes", WHOLE)
def test_a_request_is_ready_with_its_last_byte(request_bytes: bytes) -> None:
    reader, buffer = RequestReader(MAX_BODY_BYTES), bytearray()
    ready = []
    for byte in request_bytes:
        buffer.append(byte)
        ready.append(reader.take(buffer))

    assert ready == [False] * (len(request_bytes) - 1) + [True]
    assert reader.is_whole
    assert not buffer


@pytest.mark.parametrize("request_bytes", WHOLE)
def test_following_bytes_do_not_belong_to_the_request(request_bytes: bytes) -> None:
    reader, rest = read(request_bytes + b"GET /next HTTP/1.1\r\n\r\n")

    assert reader.is_whole
    assert rest == b"GET /next HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize("request_bytes", NONSENSE)
def test_a_malformed_request_is_refused_at_once(request_bytes: bytes) -> None:
    reader, _ = read(request_bytes)

    assert reader.refusal is not None
    assert not reader.is_whole
    assert not reader.is_too_large


@pytest.mark.parametrize("request_bytes", TOO_LARGE)
def test_a_body_that_is_too_large_is_not_waited_for(request_bytes: bytes) -> None:
    reader, _ = read(request_bytes)

    assert reader.is_too_large
    assert not reader.is_whole


@pytest.mark.parametrize("request_bytes", TOO_LARGE)
def test_reading_past_the_start_of_a_body_that_is_too_large_raises(request_bytes: bytes) -> None:
    reader, _ = read(request_bytes)
    body = reader.open_body()

    assert body.read(len(reader.body)) == reader.body
    with pytest.raises(BodyNotReceived):
        body.read(1)
    with pytest.raises(BodyNotReceived):
        reader.open_body().read()


def test_chunks_are_decoded() -> None:
    reader, _ = read(WHOLE[6])

    assert reader.body == b"abc0123456789"
    assert reader.open_body().read() == b"abc0123456789"


@pytest.mark.parametrize("arrived", range(1, 5))
@pytest.mark.parametrize("request_bytes", [WHOLE[0], WHOLE[6], WHOLE[7]])
def test_the_last_bytes_may_come_with_the_next_request(request_bytes: bytes, arrived: int) -> None:
    following = b"GET /next HTTP/1.1\r\n\r\n"
    reader, buffer = read(request_bytes[:-arrived])
    buffer += request_bytes[-arrived:] + following

    assert reader.take(buffer)
    assert buffer == following


def test_empty_lines_in_a_chunk_do_not_end_the_body() -> None:
    text = b"\r\n0\r\n\r\n\r\n\r\n"
    reader, rest = read(CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n\r\n" % (len(text), text))

    assert reader.body == text
    assert rest == b"\r\n"


def test_a_chunk_of_empty_lines_costs_no_more_than_others() -> None:
    reader, feeds = RequestReader(MAX_BODY_BYTES), Counter[str]()
    body = b"\r\n" * 50_000
    buffer = bytearray(CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
    sys.setprofile(lambda frame, event, arg: feeds.update([event]))
    reader.take(buffer)
    sys.setprofile(None)

    assert reader.body == body
    assert feeds.total() < 200


def test_the_bytes_of_chunks_are_held_once() -> None:
    reader, buffer = RequestReader(MAX_BODY_BYTES), bytearray(CHUNKED + b"10000\r\n")
    reader.take(buffer)
    for _ in range(10):
        buffer += b"x" * 6_000
        assert not reader.take(buffer)

    assert len(buffer) + reader.held_bytes < 60_000 + 200


def test_a_client_that_waits_for_100_continue_is_recognised() -> None:
    reader, _ = read(b"POST / HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 4\r\n\r\n")

    assert not reader.is_ready
    assert reader.request is not None
    assert reader.request.wants_continue


def test_an_http_1_0_client_gets_no_100_continue() -> None:
    reader, _ = read(b"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")

    assert not reader.is_ready
    assert reader.request is not None
    assert not reader.request.wants_continue


def test_a_large_body_may_come_in_chunks_of_a_line() -> None:
    reader, _ = read(CHUNKED + (b"40\r\n" + b"x" * 64 + b"\r\n") * 1_500 + b"0\r\n\r\n")

    assert reader.is_whole


def test_a_small_body_may_come_byte_by_byte() -> None:
    reader, _ = read(CHUNKED + b"1\r\nx\r\n" * 3_000 + b"0\r\n\r\n")

    assert reader.is_whole


@pytest.mark.parametrize("name", ["Authorization", "HOST", "te", "Trailer", "Content-Length"])
def test_trailers_that_could_change_a_request_are_refused(name: str) -> None:
    reader, _ = read(CHUNKED + f"0\r\nX: y\r\n{name}: 1\r\n\r\n".encode())

    assert reader.refusal is not None


@pytest.mark.parametrize("count", [100, 101])
def test_the_number_of_trailers_is_limited(count: int) -> None:
    reader, _ = read(CHUNKED + b"0\r\n" + b"X: y\r\n" * count + b"\r\n")

    assert (reader.refusal is not None) is (count > 100)


def test_trailers_without_an_end_are_refused() -> None:
    reader, _ = read(CHUNKED + b"0\r\nX: " + b"y" * 20_000)

    assert reader.is_too_large
