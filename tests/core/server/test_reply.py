"""Replies: one packet, valid headers, and what gunicorn's response does."""

import sys

import pytest
from gunicorn.config import Config
from gunicorn.http.errors import InvalidResponseHeader, InvalidResponseHeaderName

from core.server.reply import HttpReply
from core.server.request import read_request

HOST = b"Host: moonhook.example\r\n"
GET = b"GET / HTTP/1.1\r\n"


@pytest.fixture(scope="module")
def cfg() -> Config:
    return Config()


class Sent(list[bytes]):
    """A socket that keeps each packet."""

    sendall = list.append


def reply_of(
    cfg: Config, status: str, headers: list[tuple[str, str]], pieces: list[bytes], start: bytes
) -> tuple[HttpReply, Sent]:
    request = read_request(start + HOST + b"\r\n")
    sent = Sent()
    reply = HttpReply(request, sent, cfg)
    reply.start_response(status, headers)
    for piece in pieces:
        reply.write(piece)
    reply.close()
    return reply, sent


def test_head_and_body_leave_in_one_packet(cfg: Config) -> None:
    headers = [("X-A", "caf\xe9"), ("Content-Length", "2")]

    reply, sent = reply_of(cfg, "200 OK", headers, [b"{}"], GET)

    (packet,) = sent
    head, _, body = packet.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 200 OK"
    assert lines[1] == b"Server: gunicorn"
    assert lines[2].startswith(b"Date: ")
    assert lines[3:] == [b"Connection: keep-alive", b"X-A: caf\xe9", b"Content-Length: 2"]
    assert body == b"{}"
    assert reply.sent == 2


@pytest.mark.parametrize(
    ("status", "start", "pieces", "body"),
    [
        ("200 OK", b"HEAD / HTTP/1.1\r\n", [b"{}"], b""),
        ("204 No Content", GET, [b""], b""),
        ("304 Not Modified", GET, [], b""),
    ],
)
def test_a_reply_without_a_body(
    cfg: Config, status: str, start: bytes, pieces: list[bytes], body: bytes
) -> None:
    _, sent = reply_of(cfg, status, [("Content-Length", "2")], pieces, start)

    (packet,) = sent
    assert packet.endswith(b"\r\n\r\n" + body)
    assert (b"Content-Length" in packet) is (not status.startswith("204"))


def test_a_body_of_unknown_length_is_chunked(cfg: Config) -> None:
    _, sent = reply_of(cfg, "200 OK", [], [b"a" * 17, b"b"], GET)

    assert sent[0].partition(b"\r\n\r\n")[2] == b"11\r\n" + b"a" * 17 + b"\r\n"
    assert b"Transfer-Encoding: chunked\r\n" in sent[0]
    assert sent[1:] == [b"1\r\nb\r\n", b"0\r\n\r\n"]


def test_the_client_may_want_the_connection_closed(cfg: Config) -> None:
    _, sent = reply_of(
        cfg, "200 OK", [("Content-Length", "0")], [b""], GET + b"Connection: Close\r\n"
    )

    assert b"\r\nConnection: close\r\n" in sent[0]


def test_headers_are_those_that_were_checked(cfg: Config) -> None:
    request = read_request(GET + HOST + b"\r\n")
    headers = [("Content-Length", "0")]
    sent = Sent()
    reply = HttpReply(request, sent, cfg)
    reply.start_response("200 OK", headers)
    headers.append(("X-A", "b\r\nX-B: c"))
    reply.close()

    assert b"X-A" not in sent[0]


def test_a_reply_may_start_again_with_an_error(cfg: Config) -> None:
    request = read_request(GET + HOST + b"\r\n")
    sent = Sent()
    reply = HttpReply(request, sent, cfg)
    reply.start_response("200 OK", [("Content-Length", "5"), ("X-A", "b")])
    try:
        raise ValueError
    except ValueError:
        reply.start_response("500 Oops", [("X-B", "c")], sys.exc_info())
    reply.write(b"sorry")
    reply.close()

    assert sent[0].startswith(b"HTTP/1.1 500 Oops\r\n")
    assert b"X-A" not in sent[0]
    assert b"Content-Length" not in sent[0]
    assert sent[0].endswith(b"\r\n\r\n5\r\nsorry\r\n")


def test_headers_of_a_connection_are_left_out(cfg: Config) -> None:
    headers = [("Connection", "keep-alive"), ("Date", "then"), ("Content-Length", "0")]

    _, sent = reply_of(cfg, "200 OK", headers, [], GET)

    assert sent[0].count(b"Connection:") == 1
    assert b"then" not in sent[0]


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("X-A", "b\r\nX-B: c", InvalidResponseHeader),
        ("X-A\r\nX-B", "c", InvalidResponseHeaderName),
        ("X-A: b\r\nX-B", "c", InvalidResponseHeaderName),
        ("X-A: b", "c", InvalidResponseHeaderName),
        ("", "b", InvalidResponseHeaderName),
        ("X A", "b", InvalidResponseHeaderName),
        ("\u212aX", "b", InvalidResponseHeaderName),
        ("X-A", "\x7f", InvalidResponseHeader),
        ("X-A", b"bytes", TypeError),
        ("X-A", "\u20ac", InvalidResponseHeader),
    ],
)
def test_no_reply_has_an_invalid_header(
    cfg: Config, name: str, value: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        reply_of(cfg, "200 OK", [(name, value)], [b""], GET)
