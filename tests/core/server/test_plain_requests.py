"""What our reader takes, gunicorn's parser reads the same way."""

import sys
from typing import Any

import pytest
from gunicorn.config import Config
from gunicorn.http import wsgi
from gunicorn.http.errors import InvalidResponseHeader, InvalidResponseHeaderName
from gunicorn.http.parser import RequestParser
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.server.framing import Frame
from core.server.plain_requests import PlainRequest, PlainRequests
from core.server.reply import Reply

CLIENT, SERVER = ("192.0.2.7", 50000), ("127.0.0.1", 8000)
MAX_BODY_BYTES = 300
HOST = b"Host: moonhook.example\r\n"
GET = b"GET / HTTP/1.1\r\n"
GITHUB = (
    b"POST /hook/a/b/c?x=1&y=%20 HTTP/1.1\r\nHost: moonhook.example:8000\r\n"
    b"Accept: */*\r\nContent-Type: application/json\r\nUser-Agent: GitHub-Hookshot/044aadd\r\n"
    b"X-GitHub-Event: push\r\nX-Hub-Signature-256: sha256=ab\r\nContent-Length: 2\r\n\r\n{}"
)


@pytest.fixture(scope="module")
def cfg() -> Config:
    """As in config/gunicorn.conf.py."""
    made = Config()
    for name, value in {
        "forwarded_allow_ips": "",
        "forwarder_headers": "",
        "secure_scheme_headers": {},
        "header_map": "drop",
        "http_parser": "python",
    }.items():
        made.set(name, value)
    return made


def plain(cfg: Config, stream: bytes) -> PlainRequest | None:
    """The request at the start of the stream, as the worker would read it."""
    frame = Frame(MAX_BODY_BYTES)
    if not frame.look(bytearray(stream)) or not frame.is_whole or frame.head_end is None:
        return None
    return PlainRequests(cfg).read(stream[: frame.head_end], stream[frame.head_end : frame.end])


def comparable(environ: dict[str, Any]) -> dict[str, Any]:
    """Without what our reader leaves out or makes for each connection; with the body."""
    body = environ["wsgi.input"].read()
    left_out = {"wsgi.input", "wsgi.errors", "wsgi.early_hints", "gunicorn.socket"}
    return {key: value for key, value in environ.items() if key not in left_out} | {"body": body}


def by_gunicorn(cfg: Config, stream: bytes) -> tuple[dict[str, Any], bool]:
    """The environment, and whether the connection is closed afterwards."""
    request = next(RequestParser(cfg, iter([stream]), CLIENT))
    _, environ = wsgi.create(request, None, CLIENT, SERVER, cfg)
    environ["wsgi.multithread"] = True
    return comparable(environ), request.should_close()


def by_us(cfg: Config, request: PlainRequest) -> tuple[dict[str, Any], bool]:
    return comparable(PlainRequests(cfg).environ(request, CLIENT, SERVER)), request.should_close()


_targets = st.one_of(
    st.sampled_from(["/", "/hook/a/b/c", "/a%2Fb%zz%E2%82%AC", "/?", "/?a=b?c", "//host/x", "*"]),
    st.sampled_from(["http://elsewhere/x", "/a#b", "/a:b//c;d[e]", "/\\", "/é", "", "x:1"]),
    st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7F), max_size=12).map("/".__add__),
)
_lines = st.builds(
    lambda method, target, version: f"{method} {target} {version}".encode("latin-1"),
    st.sampled_from(["GET", "POST", "HEAD", "OPTIONS", "PURGE", "CONNECT", "get", "P@", ""]),
    _targets,
    st.sampled_from(["HTTP/1.1"] * 6 + ["HTTP/1.0", "HTTP/2.0", "HTTP/1.1 ", "http/1.1"]),
)
_names = st.one_of(
    st.sampled_from(["Host", "Content-Type", "content-length", "Connection", "Accept", "Expect"]),
    st.sampled_from(["Upgrade", "Transfer-Encoding", "HTTP2-Settings", "Proxy", "Script-Name"]),
    st.sampled_from(
        ["X-A", "x-a", "X_A", "X-A-", "--", "Content-Length\t", "X!", "X\xe9", "", " X"]
    ),
)
_values = st.one_of(
    st.sampled_from(["a", "0", "2", "close", "keep-alive", "Close", "Upgrade, close", "chunked"]),
    st.sampled_from(["100-continue", "h2c", " a ", "\ta,b\t", "", "a\rb", "a\nb", "\x0b", "\xa0"]),
    st.text(st.characters(min_codepoint=0, max_codepoint=0xFF), max_size=6),
)
_fields = st.builds(
    lambda name, value, end: f"{name}:{value}{end}".encode("latin-1"),
    _names,
    _values,
    st.sampled_from(["\r\n"] * 15 + ["\n", "\r", "\r\n ", "\r\r\n"]),
)
_streams = st.builds(
    lambda start, line, fields, body: start + line + b"\r\n" + b"".join(fields) + b"\r\n" + body,
    st.sampled_from([b""] * 8 + [b"\r\n", b"\n"]),
    _lines,
    st.lists(_fields, max_size=5),
    st.sampled_from([b"", b"{}", b"ab\r\n\r\n", b"0\r\n\r\n"]),
)


@settings(deadline=None, max_examples=1000)
@given(_streams)
@example(b"GET /a HTTP/1.1\r\nX-A: 1\r\nX_A: 2\r\n\r\n")
@example(b"GET /a HTTP/1.1\r\nX-A: 1\r\n\x85\r\n\r\n")
@example(b"POST /a HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}")
@example(b"POST /%80?%80 HTTP/1.1\r\nContent-Length: 2\r\nProxy: p\r\n\r\n{}")
def test_both_read_the_same(cfg: Config, stream: bytes) -> None:
    request = plain(cfg, stream)

    if request is not None:
        assert by_us(cfg, request) == by_gunicorn(cfg, stream)


@pytest.mark.parametrize(
    "stream",
    [
        GITHUB,
        b"GET /session HTTP/1.1\r\nhost: a\r\nauthorization: Bearer x\r\n\r\n",
        b"GET /hook/a/b/c HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + HOST + b"X-Empty:\r\nX-Latin: \xa0caf\xe9\x85 \r\n\r\n",
    ],
)
def test_usual_requests_are_taken(cfg: Config, stream: bytes) -> None:
    request = plain(cfg, stream)

    assert request is not None
    assert by_us(cfg, request) == by_gunicorn(cfg, stream)


@pytest.mark.parametrize(
    "stream",
    [
        b"GET http://elsewhere/ HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET //elsewhere/ HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET / HTTP/1.0\r\n" + HOST + b"\r\n",
        b"\r\nGET / HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"X_A: 1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"X-A: 1\r\n 2\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"X-A: 1\rX\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"X-A: \x00\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"X-A : 1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"Upgrade: h2c\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"Connection: close, x\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: +2\r\n\r\n{}",
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n{}",
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\n{",
        b"GET / HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 2 + b"\r\n",
        b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(101)) + b"\r\n",
    ],
)
def test_everything_else_is_left_for_gunicorn(cfg: Config, stream: bytes) -> None:
    assert plain(cfg, stream) is None


@pytest.mark.parametrize(("name", "value"), [("proxy_protocol", "v1"), ("certfile", "x.pem")])
def test_nothing_is_taken_where_only_gunicorn_knows_how(name: str, value: str) -> None:
    other = Config()
    other.set(name, value)

    assert plain(other, GITHUB) is None


def test_nothing_is_taken_below_a_script_name(cfg: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIPT_NAME", "/below")

    assert plain(cfg, GITHUB) is None


def test_names_that_are_kept_in_memory_are_short(cfg: Config) -> None:
    assert plain(cfg, GET + HOST + b"X-%b: y\r\n\r\n" % (b"a" * 62)) is not None
    assert plain(cfg, GET + HOST + b"X-%b: y\r\n\r\n" % (b"a" * 63)) is None


class Sent(list[bytes]):
    """A socket that keeps each packet."""

    sendall = list.append


def reply_of(
    cfg: Config, status: str, headers: list[tuple[str, str]], pieces: list[bytes], start: bytes
) -> tuple[Reply, Sent]:
    request = plain(cfg, start + HOST + b"\r\n")
    assert request is not None
    sent = Sent()
    reply = Reply(request, sent, cfg)
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
    request = plain(cfg, GET + HOST + b"\r\n")
    assert request is not None
    headers = [("Content-Length", "0")]
    sent = Sent()
    reply = Reply(request, sent, cfg)
    reply.start_response("200 OK", headers)
    headers.append(("X-A", "b\r\nX-B: c"))
    reply.close()

    assert b"X-A" not in sent[0]


def test_a_reply_may_start_again_with_an_error(cfg: Config) -> None:
    request = plain(cfg, GET + HOST + b"\r\n")
    assert request is not None
    sent = Sent()
    reply = Reply(request, sent, cfg)
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
