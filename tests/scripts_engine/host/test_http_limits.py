"""Limits of http.request on what scripts send and servers respond, with raw bytes on loopback."""

import socket
import threading
import time
from collections.abc import Iterator
from ipaddress import ip_network

import h11
import pytest
from django.test import override_settings

from accounts.models import Organisation
from scripts_engine.host.http_exchange import ResponseReader
from scripts_engine.sandbox import HostCallError
from tests.factories import reply_of, run_lua

OK = b"HTTP/1.1 200 OK\r\n"
EMPTY = b"Content-Length: 0\r\n\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
MANY_HEADERS = "the response has more than 100 headers or 16 KiB of them"
BROKEN = "the connection broke or the response is not HTTP"


class RawServer:
    """Answers each connection with the same bytes, and records the requests."""

    def __init__(self) -> None:
        self.answer = OK + EMPTY
        self.requests: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(10)
        received = b""
        while not received.endswith(b"\r\n\r\n"):
            received += connection.recv(64 * 1024)
        self.requests.append(received)
        try:
            connection.sendall(self.answer)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)
        except OSError:
            """The client had enough."""

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def server() -> Iterator[RawServer]:
    raw = RawServer()
    with override_settings(HTTP_ALLOWED_NETWORKS=[ip_network("127.0.0.0/8")]):
        yield raw
    raw.close()


def answer(organisation: Organisation, server: RawServer, sent: bytes, method: str = "GET") -> str:
    """The response as the script sees it: status and body, or the error."""
    server.answer = sent
    source = f"""local ok, r = pcall(http.request, {{url = "{server.url}/", method = "{method}"}})
        if not ok then return "error: " .. r end
        return r.status .. " " .. r.body"""
    return reply_of(run_lua(organisation, source))


def ask(organisation: Organisation, server: RawServer, options: str) -> str:
    """The result of a request: ``sent``, or the error. Options may use ``headers``."""
    source = f"""local headers = {{}}
        local ok, r = pcall(http.request, (function()
            local request = {{url = "{server.url}/"}}
            {options}
            request.headers = headers
            return request
        end)())
        return ok and "sent" or r"""
    return reply_of(run_lua(organisation, source))


# --- The request -------------------------------------------------------------------------------


def test_a_request_has_up_to_100_headers(acme: Organisation, server: RawServer) -> None:
    fill = 'for i = 1, 100 do headers["X-" .. i] = "a" end'

    assert ask(acme, server, fill) == "sent"
    assert server.requests[0].count(b"\r\nX-") == 100


@pytest.mark.parametrize("count", [101, 9000])
def test_a_request_with_more_headers_is_not_sent(
    acme: Organisation, server: RawServer, count: int
) -> None:
    fill = f'for i = 1, {count} do headers["X-" .. i] = "a" end'

    assert ask(acme, server, fill) == "http.request: more than 100 headers"
    assert server.requests == []


def test_the_headers_of_a_request_have_16_kib(acme: Organisation, server: RawServer) -> None:
    fits, too_long = (f'headers["X-A"] = ("a"):rep({16 * 1024 - 3 + more})' for more in (0, 1))

    assert ask(acme, server, too_long) == "http.request: more than 16 KiB of headers"
    assert server.requests == []
    assert ask(acme, server, fits) == "sent"


def test_a_header_given_twice_is_refused(acme: Organisation, server: RawServer) -> None:
    problem = ask(acme, server, 'headers["X-A"] = "1" headers["x-a"] = "2"')

    assert problem.lower() == "http.request: the header x-a is given twice"
    assert server.requests == []


def test_a_given_header_replaces_the_default(acme: Organisation, server: RawServer) -> None:
    ask(acme, server, 'headers["user-agent"] = "tea/1"')

    assert b"\r\nuser-agent: tea/1\r\n" in server.requests[0]
    assert b"Moonhook" not in server.requests[0]


def test_a_url_has_up_to_8_kib(acme: Organisation, server: RawServer) -> None:
    fits, too_long = (
        f'request.url = request.url .. ("a"):rep({8 * 1024 + more} - #request.url)'
        for more in (0, 1)
    )

    assert ask(acme, server, too_long) == "http.request: the URL is longer than 8 KiB"
    assert server.requests == []
    assert ask(acme, server, fits) == "sent"


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("", b"/"),
        ("?a=b#c", b"/?a=b"),
        ("a b/\\r\\nX: 1?q=\\0 \\255", b""),
        ("a b/\\r\\nX: 1?q=\\0 é", b"/a%20b/%0D%0AX:%201?q=%00%20%C3%A9"),
    ],
)
def test_a_url_cannot_inject_into_the_request_line(
    acme: Organisation, server: RawServer, path: str, target: bytes
) -> None:
    ask(acme, server, f'request.url = request.url .. "{path}"')

    lines = [request.split(b"\r\n")[0] for request in server.requests]
    assert lines == [b"GET %b HTTP/1.1" % target] * bool(target)


@pytest.mark.parametrize(
    "host",
    [
        "a" * 254,
        "a." * 127 + "a",
        "é" * 8000,
        "é." * 2000,
        "a%2f",
        "[fe80::1%25lo]",
        "[fe80::1%lo]",
    ],
)
def test_an_impossible_host_name_is_not_looked_up(
    acme: Organisation, server: RawServer, host: str
) -> None:
    problem = ask(acme, server, f'request.url = "http://{host}/"')

    assert problem.startswith("http.request: ")
    assert problem in {
        "http.request: the URL is malformed",
        "http.request: the URL is longer than 8 KiB",
    }


def test_a_server_that_does_not_read_is_an_error_in_time(acme: Organisation) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        override_settings(HTTP_ALLOWED_NETWORKS=[ip_network("127.0.0.0/8")]),
    ):
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        source = f"""local body = ("x"):rep(7 * 1024 * 1024)
            local options = {{url = "{url}", method = "PUT", body = body, timeout = 0.3}}
            local ok, problem = pcall(http.request, options)
            return problem"""
        problem = reply_of(run_lua(acme, source))

    assert problem == "http.request: 127.0.0.1 did not answer within 0.3 s"


def test_a_silent_tls_handshake_is_an_error_in_time(acme: Organisation, server: RawServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/"
        problem = ask(acme, server, f'request.url = "{url}" request.timeout = 0.3')

    assert problem == "http.request: 127.0.0.1 did not answer within 0.3 s"


# --- The response ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        (OK + b"Content-Length: 5\r\n\r\nhello", "200 hello"),
        (OK + b"content-length:5\r\n\r\nhello and more", "200 hello"),
        (OK + b"Content-Length: 5, 5\r\n\r\nhello", "200 hello"),
        (OK + b"\r\nto the end", "200 to the end"),
        (b"HTTP/1.0 404\n\nbare", "404 bare"),
        (CHUNKED + b"5\r\nhello\r\n00001;a=b\r\n!\r\n0\r\nX-Sum: 1\r\n\r\n", "200 hello!"),
        (b"HTTP/1.1 204 No Content\r\n\r\nnothing", "204 "),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "304 "),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: a\r\n\r\n" + OK + EMPTY,
            "200 ",
        ),
    ],
)
def test_a_response_is_read_as_it_is_framed(
    acme: Organisation, server: RawServer, sent: bytes, found: str
) -> None:
    assert answer(acme, server, sent) == found


def test_the_answer_to_head_has_no_body(acme: Organisation, server: RawServer) -> None:
    assert answer(acme, server, OK + b"Content-Length: 5\r\n\r\n", "HEAD") == "200 "


def test_a_header_that_comes_twice_is_joined(acme: Organisation, server: RawServer) -> None:
    server.answer = OK + b"X-A: 1\r\nx-a:\t2 \r\nX-B: one\r\n two\r\n" + EMPTY
    source = f'local r = http.get("{server.url}") return {{r.headers["x-a"], r.headers["x-b"]}}'

    assert reply_of(run_lua(acme, source)) == '["1, 2","one two"]'


def headers(count: int) -> bytes:
    return b"".join(b"X-%d: a\r\n" % number for number in range(count))


def header_of(size_bytes: int) -> bytes:
    """A header of this size in bytes, name and value together."""
    return b"X-A: %b\r\n" % (b"a" * (size_bytes - 3))


@pytest.mark.parametrize(
    "sent",
    [
        OK + headers(100) + b"\r\n",
        OK + header_of(16 * 1024) + b"\r\n",
        b"HTTP/1.1 103 Early\r\n" + headers(50) + b"\r\n" + OK + headers(50) + b"\r\n",
        CHUNKED + b"0\r\n" + headers(99) + b"\r\n",
    ],
)
def test_a_response_has_up_to_100_headers_and_16_kib_of_them(
    acme: Organisation, server: RawServer, sent: bytes
) -> None:
    assert answer(acme, server, sent) == "200 "


@pytest.mark.parametrize(
    "sent",
    [
        OK + headers(101) + b"\r\n",
        OK + header_of(16 * 1024 + 1) + b"\r\n",
        b"HTTP/1.1 103 Early\r\n" + headers(50) + b"\r\n" + OK + headers(51) + b"\r\n",
        CHUNKED + b"0\r\n" + headers(100) + b"\r\n",
        CHUNKED + b"0\r\n" + header_of(16 * 1024) + b"\r\n",
    ],
)
def test_more_headers_in_a_response_are_an_error(
    acme: Organisation, server: RawServer, sent: bytes
) -> None:
    assert answer(acme, server, sent) == f"error: http.request: 127.0.0.1: {MANY_HEADERS}"


def test_the_number_of_interim_responses_is_limited(acme: Organisation, server: RawServer) -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"

    assert answer(acme, server, interim * 10 + OK + EMPTY) == "200 "
    assert "more than 10 interim responses" in answer(acme, server, interim * 10_000)


def test_an_answer_in_small_chunks_is_read_up_to_their_limit(
    acme: Organisation, server: RawServer
) -> None:
    chunk = b"1\r\nx\r\n"

    assert answer(acme, server, CHUNKED + chunk * 8_191 + LAST_CHUNK) == "200 " + "x" * 8_191
    problem = answer(acme, server, CHUNKED + chunk * 2 * 1024 * 1024 + LAST_CHUNK)
    assert problem == "error: http.request: 127.0.0.1: the response has more than 8,192 chunks"


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 200 " + b"x" * 40_000 + b"\r\n\r\n",
        b"H" * 40_000,
        OK + b"X" * 40_000 + b": a\r\n\r\n",
        OK + b"X: " + b"x " * 20_000,
        CHUNKED + b"1;" + b"x" * 40_000,
        CHUNKED + b"0" * 40_000,
    ],
)
def test_a_line_that_is_too_long_is_an_error(
    acme: Organisation, server: RawServer, sent: bytes
) -> None:
    assert answer(acme, server, sent) == f"error: http.request: 127.0.0.1: {MANY_HEADERS}"


@pytest.mark.parametrize(
    "sent",
    [
        OK + b"X:" + b" " * 20_000 + b"\0\r\n\r\n",
        OK + b"X:" + b"\t " * 129 + b"a\r\n" + EMPTY,
        OK + b"X: a" + b"\n " * 8_000 + b"\0\r\n\r\n",
        OK + b"X: a" + b"\r\n\t" * 5_000 + b"\0\r\n\r\n",
        b"HTTP/1.1 103 Early\r\nX:" + b" " * 20_000 + b"\0\r\n\r\n",
        CHUNKED + b"5;" + b" " * 20_000 + b"\nx\r\nhello\r\n" + LAST_CHUNK,
        CHUNKED + b"5\r\nhello\r\n5;" + b" " * 20_000 + b"\nx\r\nhello\r\n" + LAST_CHUNK,
        CHUNKED + b"0;" + b" " * 20_000 + b"\nx\r\n\r\n",
        CHUNKED + b"0\r\nX:" + b" " * 20_000 + b"\0\r\n\r\n",
        CHUNKED + b"5\r\nhello\r\n000 ;a=b\r\nX:" + b" " * 20_000 + b"\0\r\n\r\n",
    ],
)
def test_too_much_whitespace_in_the_framing_of_a_response_is_an_error(
    acme: Organisation, server: RawServer, sent: bytes
) -> None:
    problem = "the response has more than 256 whitespace characters in a row"

    assert answer(acme, server, sent) == f"error: http.request: 127.0.0.1: {problem}"


BLANKS = b" " * 500 + b"\r\n" * 500


@pytest.mark.parametrize(
    "sent",
    [
        OK + b"X:" + b" " * 254 + b"a\r\nContent-Length: 1500\r\n\r\n" + BLANKS,
        OK + b"\r\n" + BLANKS,
        CHUNKED + b"5dc\r\n" + BLANKS + b"\r\n" + LAST_CHUNK,
        CHUNKED + b"1f4\r\n" + BLANKS[:500] + b"\r\n3e8\r\n" + BLANKS[500:] + b"\r\n0;a\r\n\r\n",
    ],
)
def test_the_content_of_a_response_may_be_whitespace(
    acme: Organisation, server: RawServer, sent: bytes
) -> None:
    assert answer(acme, server, sent) == f"200 {BLANKS.decode()}"


def test_chunks_count_however_they_arrive() -> None:
    """Sizes and contents arrive in separate packets."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    packets = [CHUNKED, *[b"1\r\n", b" \r\n"] * 8_193]
    sending = threading.Thread(target=lambda: [theirs.send(packet) for packet in packets])
    protocol = h11.Connection(h11.CLIENT)
    protocol.send(h11.Request(method="GET", target="/", headers=[("Host", "localhost")]))
    protocol.send(h11.EndOfMessage())

    reader = ResponseReader(ours, protocol, time.monotonic() + 60)
    sending.start()
    with ours, theirs, pytest.raises(HostCallError, match="more than 8,192 chunks"):
        reader.response()
    sending.join()


def test_chunks_that_are_mostly_extensions_are_an_error(
    acme: Organisation, server: RawServer
) -> None:
    chunk = b"1;" + b"x" * 10_000 + b"\r\nx\r\n"

    problem = answer(acme, server, CHUNKED + chunk * 500 + LAST_CHUNK)
    assert problem == "error: http.request: 127.0.0.1: the response is larger than 2 MiB"


@pytest.mark.parametrize(
    "sent",
    [
        OK + b"Content-Length: 2097153\r\n\r\n" + b"x" * 0x200001,
        OK + b"Content-Length: 9999999999999999999\r\n\r\n" + b"x" * 0x200001,
        CHUNKED + b"200001\r\n" + b"x" * 0x200001,
        CHUNKED + b"ffffffffffffffff\r\n" + b"x" * 0x200001,
        CHUNKED + b"100000\r\n" + b"x" * 0x100000 + b"\r\n100001\r\n" + b"x" * 0x100001,
        OK + b"\r\n" + b"x" * 0x200001,
    ],
)
def test_a_body_over_2_mib_is_an_error_however_it_is_framed(
    acme: Organisation, server: RawServer, sent: bytes
) -> None:
    assert (
        answer(acme, server, sent)
        == "error: http.request: 127.0.0.1: the response is larger than 2 MiB"
    )


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"HTTP/1.1 -200 OK\r\n\r\n",
        OK,
        OK + b"no colon\r\n\r\n",
        OK + b": no name\r\n\r\n",
        OK + b"X A: spaced\r\n\r\n",
        OK + b" folded first\r\n\r\n",
        OK + b"X-A: a\rX-B: b\r\n\r\n",
        OK + b"X-A: \0\r\n\r\n",
        OK + b"Content-Length: 5\r\n\r\nhell",
        OK + b"Content-Length: -1\r\n\r\nhello",
        OK + b"Content-Length: +5\r\n\r\nhello",
        OK + b"Content-Length: 5_0\r\n\r\nhello",
        OK + b"Content-Length: 4, 5\r\n\r\nhello",
        CHUNKED,
        CHUNKED + b"-1\r\nhello",
        CHUNKED + b"+5\r\nhello\r\n" + LAST_CHUNK,
        CHUNKED + b"0x5\r\nhello\r\n" + LAST_CHUNK,
        CHUNKED + b"g\r\n",
        CHUNKED + b"\r\n",
        CHUNKED + b"5\r\nhello!\r\n" + LAST_CHUNK,
        CHUNKED + b"5\r\nhell",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + LAST_CHUNK,
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    ],
)
def test_a_response_that_is_not_http_is_an_error(
    acme: Organisation, server: RawServer, sent: bytes
) -> None:
    assert answer(acme, server, sent) == f"error: http.request: 127.0.0.1: {BROKEN}"


def test_a_redirect_to_a_url_over_8_kib_is_an_error(acme: Organisation, server: RawServer) -> None:
    sent = b"HTTP/1.1 302 Found\r\nLocation: /%b\r\n" % (b"../" * 3000) + EMPTY
    longer = b"HTTP/1.1 302 Found\r\nLocation: /%b\r\n" % (b"a" * 9000) + EMPTY

    assert "more than 5 redirects" in answer(acme, server, sent)
    assert answer(acme, server, longer) == "error: http.request: the URL is longer than 8 KiB"
