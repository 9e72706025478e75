"""Our reader and gunicorn's parser find the same requests in any stream, in any pieces."""

from dataclasses import dataclass, field

import pytest
from gunicorn.config import Config
from gunicorn.http.errors import NoMoreData, ParseException
from gunicorn.http.parser import RequestParser
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.server.request_reader import RequestReader

MAX_BODY_BYTES = 300
_REFUSALS = (ParseException, NoMoreData, StopIteration)

_NAMES = [
    b"Content-Length",
    b"content-length",
    b"Content_Length",
    b"Content-Length ",
    b"Transfer-Encoding",
    b"TRANSFER-ENCODING",
    b"Transfer_Encoding",
    b"Transfer-Encoding\t",
    b" Transfer-Encoding",
    b"Expect",
    b"Upgrade",
    b"Connection",
    b"Host",
    b"X",
    b"",
]
_VALUES = [
    b"0",
    b"3",
    b"03",
    b"+3",
    b"-3",
    b"3, 3",
    b"0x3",
    b"3 ",
    b"\xb3",
    b"3\x00",
    b"3\r",
    b"3\nX: y",
    b"3\r\n 4",
    b"99999999999999999999",
    b"0" * 20 + b"3",
    b"chunked",
    b"CHUNKED",
    b"\tchunked ",
    b"chunked\x0b",
    b"gzip, chunked",
    b"chunked, identity",
    b"identity",
    b"100-continue",
    b"h2c",
    b"close",
    b"",
]
_LINES = [
    b"GET / HTTP/1.1",
    b"POST / HTTP/1.1",
    b"POST / HTTP/1.0",
    b"POST http://elsewhere/ HTTP/1.1",
    b"CONNECT a:1 HTTP/1.1",
    b"PROXY TCP4 127.0.0.1 127.0.0.2 1 2",
    b"GET /",
    b"PRI * HTTP/2.0",
    b"",
]
_CHUNKS = [
    b"0\r\n\r\n",
    b"0\r\nX: y\r\n\r\n",
    b"0\r\nContent-Length: 3\r\n\r\n",
    b"0\r\nX: y\nZ: z\r\n\r\n",
    b"00\r\n\r\n",
    b"3\r\nabc\r\n",
    b"3;x=y\r\nabc\r\n",
    b'3 ; x="\r\nabc\r\n',
    b'3;x="y z"\r\nabc\r\n',
    b"3;\r\nabc\r\n",
    b'3;x="\r\n\r\n"\r\nabc\r\n',
    b"4\r\n\r\n\r\n\r\n",
    b"7\r\n0\r\n\r\n\r\n\r\n",
    b"5\r\n\r\n\r\n0\r\n",
    b"3\nabc\n",
    b"3 \r\nabc\r\n",
    b"0x3\r\nabc\r\n",
    b"+3\r\nabc\r\n",
    b"-3\r\nabc\r\n",
    b"3_0\r\nabc\r\n",
    b"0" * 20 + b"3\r\nabc\r\n",
    b"ffffffffffffffffffff\r\nabc\r\n",
    b"3\r\nabcd\r\n",
    b"3\r\nabc",
    b"abc",
    b"\r\n",
]
_ends = st.sampled_from([b"\r\n"] * 12 + [b"\n", b"\r", b"\r\r\n"])
_fields = st.builds(
    lambda name, value, end: name + b": " + value + end,
    st.sampled_from(_NAMES),
    st.sampled_from(_VALUES),
    _ends,
)
_heads = st.builds(
    lambda line, end, fields: line + end + b"".join(fields) + b"\r\n",
    st.sampled_from(_LINES),
    _ends,
    st.lists(_fields, max_size=4),
)
_chunked = st.builds(
    lambda chunks: (
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(chunks) + b"0\r\n\r\n"
    ),
    st.lists(st.sampled_from(_CHUNKS), max_size=4),
)
_streams = st.lists(
    st.one_of(_heads, _chunked, st.sampled_from(_CHUNKS), st.binary(max_size=8)),
    min_size=1,
    max_size=6,
).map(b"".join)


@dataclass
class Seen:
    """The requests served from a stream."""

    requests: list[tuple[str, str, bytes]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)


def by_parser(stream: bytes) -> Seen:
    """By gunicorn alone, which gets all of it at once, until it refuses a request."""
    seen = Seen()
    parser = RequestParser(Config(), iter([stream]), ("127.0.0.1", 1))
    try:
        while True:
            start = len(stream) - len(parser.unreader.buf.getvalue()) if seen.starts else 0
            request = next(parser)
            body = request.body.read()
            seen.requests.append((request.method, request.uri, body))
            seen.starts.append(start)
    except _REFUSALS:
        return seen


def by_us(pieces: list[bytes]) -> Seen:
    """By our reader, which gets pieces, until it refuses a request."""
    seen, buffer, start, arrived = Seen(), bytearray(), 0, 0
    reader = RequestReader(MAX_BODY_BYTES)
    for piece in pieces:
        buffer += piece
        arrived += len(piece)
        while reader.take(buffer):
            request = reader.request
            if not reader.is_whole or request is None:
                return seen
            seen.requests.append((request.method, request.uri, bytes(reader.body)))
            seen.starts.append(start)
            if request.should_close():
                return seen
            start = arrived - len(buffer)
            reader = RequestReader(MAX_BODY_BYTES)
    return seen


def split(stream: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(stream) + 1) for place in places} | {len(stream)})
    return [stream[a:b] for a, b in zip([0, *ends], ends, strict=False)]


@settings(deadline=None)
@given(_streams, st.lists(st.integers(min_value=0), max_size=6))
@example(b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /next HTTP/1.1\r\n\r\n", [5, 40])
@example(b"\r\n\r\nGET / HTTP/1.1\r\n\r\n", [1, 2, 3])
@example(b"GET / HTTP/1.1\r\nX: a\nContent-Length: 3\r\n\r\nabc", [])
@example(b"GET / HTTP/1.1\r\n\r\nContent-Length: 3\r\n\r\nabc", [])
def test_both_read_the_same_requests(stream: bytes, places: list[int]) -> None:
    whole, pieces = by_parser(stream), by_us(split(stream, places))

    # Our reader may refuse a request that gunicorn accepts, but never reads it differently.
    served = len(pieces.requests)
    assert pieces.requests == whole.requests[:served]
    assert pieces.starts == whole.starts[:served]


@settings(deadline=None)
@given(_streams, st.lists(st.integers(min_value=0), max_size=6))
def test_the_pieces_do_not_matter(stream: bytes, places: list[int]) -> None:
    assert by_us(split(stream, places)) == by_us([stream])


@pytest.mark.parametrize("name", [b"Content-Length", b"Transfer-Encoding", b"Expect"])
def test_blanks_in_a_head_cost_no_more_than_other_bytes(name: bytes) -> None:
    head = b"POST / HTTP/1.1\r\n" + name + b": " + b" " * 200_000 + b"\rx\r\n\r\n"

    assert RequestReader(MAX_BODY_BYTES).take(bytearray(head))
