"""gunicorn's parser reads the same requests in the same way, and refuses the same."""

import logging
from typing import Any

import pytest
from gunicorn.config import Config
from gunicorn.http import wsgi
from gunicorn.http.errors import NoMoreData, ParseException
from gunicorn.http.parser import RequestParser
from gunicorn.workers.base import Worker
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.server.request import _environ_key, environ_of_all_requests
from core.server.request_reader import RequestReader
from tests.examples import examples

CLIENT, SERVER = ("192.0.2.7", 50000), ("127.0.0.1", 8000)
MAX_BODY_BYTES = 300
HOST = b"Host: moonhook.example\r\n"
GET = b"GET / HTTP/1.1\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
GITHUB = (
    b"POST /hook/a/b/c?x=1&y=%20 HTTP/1.1\r\nHost: moonhook.example:8000\r\n"
    b"Accept: */*\r\nContent-Type: application/json\r\nUser-Agent: GitHub-Hookshot/044aadd\r\n"
    b"X-GitHub-Event: push\r\nX-Hub-Signature-256: sha256=ab\r\nContent-Length: 2\r\n\r\n{}"
)


@pytest.fixture(scope="module")
def cfg() -> Config:
    """The rules that we follow: no peer may set the scheme, or fields with underscores."""
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


def read(stream: bytes) -> RequestReader:
    reader = RequestReader(MAX_BODY_BYTES)
    reader.take(bytearray(stream))
    return reader


def comparable(environ: dict[str, Any]) -> dict[str, Any]:
    """Without what our reader leaves out or makes for each connection; with the body."""
    body = environ["wsgi.input"].read()
    left_out = {"wsgi.input", "wsgi.errors", "wsgi.early_hints", "gunicorn.socket"}
    return {key: value for key, value in environ.items() if key not in left_out} | {"body": body}


def by_gunicorn(cfg: Config, stream: bytes) -> tuple[dict[str, Any], bool]:
    """The environment, and whether the connection is closed afterwards."""
    request = next(RequestParser(cfg, iter([stream]), CLIENT))
    _, environ = wsgi.create(request, StringSocket(), CLIENT, SERVER, cfg)
    environ["wsgi.multithread"] = True
    return comparable(environ), request.should_close() or ends_connection(environ)


def ends_connection(environ: dict[str, Any]) -> bool:
    """What gunicorn, which reads one option of the first field, does not see."""
    fields = environ.get("HTTP_CONNECTION", "").lower().split(",")
    options = {option.strip(" \t") for option in fields}
    is_old = environ["SERVER_PROTOCOL"] == "HTTP/1.0"
    return "close" in options or (is_old and options != {"keep-alive"})


def by_us(cfg: Config, reader: RequestReader) -> tuple[dict[str, Any], bool]:
    request = reader.request
    assert request is not None
    environ = request.environ(environ_of_all_requests(cfg), reader.open_body(), CLIENT, SERVER)
    return comparable(environ), request.should_close()


class StringSocket(list[bytes]):
    """A socket that keeps what is sent."""

    send = sendall = list.append


class Log(logging.Logger):
    def access(self, *args: object) -> None:
        pass


class Refusing(Worker):
    """A worker that only answers errors."""

    def __init__(self) -> None:
        self.cfg, self.log = Config(), Log("nowhere")


def status_of(error: Exception) -> int:
    sent = StringSocket()
    sent.gettimeout = lambda: 0.0
    Refusing().handle_error(None, sent, CLIENT, error)
    return int(sent[0].split(b" ")[1])


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


@settings(deadline=None, max_examples=examples(1000))
@given(_streams)
@example(b"GET /a HTTP/1.1\r\nX-A: 1\r\nX_A: 2\r\n\r\n")
@example(b"GET /a HTTP/1.1\r\nX-A: 1\r\n\x85\r\n\r\n")
@example(b"POST /a HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}")
@example(b"POST /%80?%80 HTTP/1.1\r\nContent-Length: 2\r\nProxy: p\r\n\r\n{}")
def test_both_read_the_same(cfg: Config, stream: bytes) -> None:
    reader = read(stream)

    if reader.is_whole:
        assert by_us(cfg, reader) == by_gunicorn(cfg, stream)


@settings(deadline=None, max_examples=examples(1000))
@given(_streams)
def test_both_refuse_the_same(cfg: Config, stream: bytes) -> None:
    reader = read(stream)

    if reader.refusal is not None:
        with pytest.raises((ParseException, NoMoreData)):
            by_gunicorn(cfg, stream)


@pytest.mark.parametrize(
    "stream",
    [
        GITHUB,
        b"GET /session HTTP/1.1\r\nhost: a\r\nauthorization: Bearer x\r\n\r\n",
        b"GET /hook/a/b/c HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + HOST + b"X-Empty:\r\nX-Latin: \xa0caf\xe9\x85 \r\n\r\n",
        b"GET http://elsewhere/a?b HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET //elsewhere/ HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /a?b#c HTTP/1.1\r\n" + HOST + b"\r\n",
        b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n",
        b"CONNECT a:1 HTTP/1.1\r\n" + HOST + b"\r\n",
        b"SOMETHING-ELSE / HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET / HTTP/1.0\r\n" + HOST + b"\r\n",
        b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
        b"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n",
        b"GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n",
        b"\r\nGET / HTTP/1.1\r\n" + HOST + b"\r\n",
        GET + HOST + b"X-A: 1\r\nX-A: 2\r\nX-a:\r\n\r\n",
        GET + HOST + b"X_A: 1\r\nX-A: 2\r\nHTTP_HOST: b\r\nContent_Length: 3\r\n\r\n",
        GET + HOST + b"Upgrade: h2c\r\n\r\n",
        GET + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        GET + HOST + b"Connection: close, x\r\n\r\n",
        GET + HOST + b"Connection: x\r\nConnection: Close\r\n\r\n",
        GET + HOST + b"X-%b: y\r\n\r\n" % (b"a" * 63),
        GET + HOST + b"Expect: 100-continue\r\nExpect: 100-Continue\r\n\r\n",
        GET + HOST + b"X!#$%&'*+.^`|~: y\r\n\r\n",
        b"GET /" + b"a" * 4080 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
        GET + b"X: %b\r\n\r\n" % (b"a" * 8185),
        GET + b"".join(b"X-%d: y\r\n" % n for n in range(100)) + b"\r\n",
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 002 \r\n\r\n{}",
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\nExpect: 100-Continue\r\n\r\n{}",
        b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        CHUNKED + b"\r\n2;a=b\r\n{}\r\n0\r\nX-A: 1\r\nX_A: 2\r\n\r\n",
        CHUNKED + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
def test_both_read_valid_requests(cfg: Config, stream: bytes) -> None:
    reader = read(stream)

    assert reader.is_whole
    assert by_us(cfg, reader) == by_gunicorn(cfg, stream)


@pytest.mark.parametrize(
    ("stream", "status"),
    [
        (b"GET  / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1 \r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b" GET / HTTP/1.1\r\n\r\n", 400),
        (b"get / HTTP/1.1\r\n\r\n", 400),
        (b"GE / HTTP/1.1\r\n\r\n", 400),
        (b"A" * 21 + b" / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 400),
        (b"GET / HTTP/0.9\r\n\r\n", 400),
        (b"GET / http/1.1\r\n\r\n", 400),
        (b"SOURCE / ICE/1.0\r\n\r\n", 400),
        (b"SETUP / RTSP/1.0\r\n\r\n", 400),
        (b"GET * HTTP/1.1\r\n\r\n", 400),
        (b"GET a:1 HTTP/1.1\r\n\r\n", 400),
        (b"GET http://[a HTTP/1.1\r\n\r\n", 400),
        (b"GET /\xe9 HTTP/1.1\r\n\r\n", 400),
        (b"GET /\x7f HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\nHost: a\r\n\r\n", 400),
        (GET + HOST + HOST + b"\r\n", 400),
        (GET + b"Content-Type: a\r\nContent-Type: a\r\n\r\n", 400),
        (GET + b"X-A: 1\r\n 2\r\n\r\n", 400),
        (GET + b" X-A: 1\r\n\r\n", 400),
        (GET + b"X-A: 1\rX\r\n\r\n", 400),
        (GET + b"X-A: 1\r\r\n\r\n", 400),
        (GET + b"X-A: 1\nX-B: 2\r\n\r\n", 400),
        (GET + b"X-A: \x00\r\n\r\n", 400),
        (GET + b"X-A: \x7f\r\n\r\n", 400),
        (GET + b"X-A : 1\r\n\r\n", 400),
        (GET + b"X-A\r\n\r\n", 400),
        (GET + b": 1\r\n\r\n", 400),
        (GET + b"X\xe9: 1\r\n\r\n", 400),
        (GET + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400),
        (GET + b"Content-Length: 2, 2\r\n\r\n{}", 400),
        (GET + b"Content-Length: +2\r\n\r\n{}", 400),
        (GET + b"Content-Length: \xb2\r\n\r\n{}", 400),
        (GET + b"Content-Length:\r\n\r\n", 400),
        (CHUNKED + b"Content-Length: 2\r\n\r\n0\r\n\r\n", 400),
        (GET + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (CHUNKED + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (GET + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400),
        (GET + b"Transfer-Encoding: identity\r\n\r\n", 400),
        (GET + b"Transfer-Encoding: gzip\r\n\r\n", 400),
        (GET + b"Transfer-Encoding: xchunked\r\n\r\n", 501),
        (GET + b"Transfer-Encoding: magic, chunked\r\n\r\n0\r\n\r\n", 501),
        (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (GET + b"Expect: a-miracle\r\n\r\n", 417),
        (b"GET /" + b"a" * 4081 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
        (b"GET /" + b"a" * 5000, 414),
        (GET + b"X: %b\r\n\r\n" % (b"a" * 8186), 431),
        (GET + b"".join(b"X-%d: y\r\n" % n for n in range(101)) + b"\r\n", 431),
        (GET + b"X: y\r\n" * 200_000 + b"\r\n", 431),
    ],
)
def test_both_refuse_malformed_requests(cfg: Config, stream: bytes, status: int) -> None:
    reader = read(stream)

    assert reader.refusal is not None
    assert status_of(reader.refusal) == status
    with pytest.raises(ParseException) as refused:
        by_gunicorn(cfg, stream)
    assert status_of(refused.value) == status


@pytest.mark.parametrize(
    "stream",
    [
        # Versions that nothing uses.
        b"GET / HTTP/1.2\r\n\r\n",
        # gunicorn does not count the fields that it drops.
        GET + b"X_A: y\r\n" * 101 + b"\r\n",
        # Codings that are never decoded: the application would get other bytes than were meant.
        GET + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        # Blanks that a sender must not write (RFC 9112, section 7.1.1).
        CHUNKED + b"\r\n2 ; a=b\r\n{}\r\n0\r\n\r\n",
        GET + b"Content-Length: %b\r\n\r\n" % (b"9" * 20),
    ],
)
def test_only_we_refuse(cfg: Config, stream: bytes) -> None:
    assert read(stream).refusal is not None
    assert by_gunicorn(cfg, stream)


def test_an_http_1_0_connection_with_other_options_ends(cfg: Config) -> None:
    stream = b"GET / HTTP/1.0\r\nConnection: keep-alive\r\nConnection: x\r\n\r\n"

    assert by_us(cfg, read(stream))[1]


def test_names_that_are_kept_in_memory_are_short() -> None:
    read(GET + HOST + b"X-%b: y\r\n\r\n" % (b"a" * 62))
    before = _environ_key.cache_info().currsize
    read(GET + HOST + b"X-%b: y\r\n\r\n" % (b"a" * 63))

    assert _environ_key.cache_info().currsize == before
