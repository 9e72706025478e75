"""http.request: a script talks to the public internet, within bounds, through this process.

Against requests that are meant to reach what only this machine can reach (SSRF): the name is
resolved once, the answer is judged, and the connection goes to that very address, under the
name's own Host header and certificate. Every redirect is judged anew. No proxy variable of the
environment is followed, and nothing of this process (cookies, credentials) is sent.
"""

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

import certifi
import urllib3
from django.conf import settings
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError, LocationParseError
from urllib3.util import Timeout, parse_url
from urllib3.util.url import Url

from scripts_engine.host.public_addresses import IPAddress, is_allowed, resolve
from scripts_engine.sandbox.host_call import HostCallError

MAX_CALLS = 20
MAX_SECONDS = 5.0
MAX_RESPONSE_BYTES = 2 * 1024 * 1024
MAX_REDIRECTS = 5

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# What frames the message or names its end points is this side's to say.
_OWN_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade",
     "keep-alive", "proxy-authorization", "proxy-connection", "expect"}
)  # fmt: skip
_CREDENTIAL_HEADERS = frozenset({"authorization", "cookie"})
_BODY_HEADERS = frozenset({"content-type", "content-encoding", "content-language"})


@dataclass(frozen=True)
class _Request:
    method: str
    url: str
    headers: dict[str, str]
    body: bytes | None


@dataclass(frozen=True)
class _Response:
    status: int
    headers: dict[str, str]
    body: bytes


class HttpCapability:
    """The http of one run; counts its calls."""

    def __init__(self) -> None:
        self._calls = 0

    def request(self, options: Any, *, deadline: float) -> dict[bytes, Any]:
        """``{method, url, headers, body?, timeout?}`` → ``{status, headers, body}``.

        Raises ``HostCallError`` with a text for the script.
        """
        self._calls += 1
        if self._calls > MAX_CALLS:
            raise HostCallError(f"http: more than {MAX_CALLS} calls in a run")
        request, seconds = _checked(options)
        ends_at = min(deadline, time.monotonic() + seconds)
        try:
            response = _follow(request, ends_at)
        except TimeoutError:
            raise HostCallError(f"http: no complete answer within {seconds:g} s") from None
        except (HTTPError, OSError) as error:
            if time.monotonic() >= ends_at:
                raise HostCallError(f"http: no complete answer within {seconds:g} s") from None
            raise HostCallError(f"http: {_reason(error)}") from None
        return {
            b"status": response.status,
            b"headers": {
                name.encode("latin-1"): value.encode("latin-1", "replace")
                for name, value in response.headers.items()
            },
            b"body": response.body,
        }


def _checked(options: Any) -> tuple[_Request, float]:
    if not isinstance(options, dict):
        raise HostCallError("http: wrong arguments")
    method = _text(options.get(b"method"), "method").upper()
    if method not in _METHODS:
        raise HostCallError(f"http: the method must be one of {', '.join(sorted(_METHODS))}")
    url = _text(options.get(b"url"), "url")
    headers = _checked_headers(options.get(b"headers", {}))
    body = options.get(b"body")
    if body is not None and not isinstance(body, bytes):
        raise HostCallError("http: the body must be a string")
    timeout = options.get(b"timeout", MAX_SECONDS)
    if not isinstance(timeout, int | float) or not 0 < timeout <= MAX_SECONDS:
        raise HostCallError(f"http: the timeout must be over 0 and at most {MAX_SECONDS:g} s")
    return _Request(method, url, headers, body), float(timeout)


def _checked_headers(headers: Any) -> dict[str, str]:
    if not isinstance(headers, dict):
        raise HostCallError("http: headers must be a table")
    checked = {"User-Agent": "Moonhook", "Accept-Encoding": "identity"}
    for raw_name, raw_value in headers.items():
        name, value = _text(raw_name, "header name"), _text(raw_value, "header value")
        if not _HEADER_NAME.fullmatch(name) or any(character in value for character in "\r\n\0"):
            raise HostCallError("http: a header has characters that it may not have")
        if name.lower() in _OWN_HEADERS:
            raise HostCallError(f"http: a script may not set the header {name}")
        checked = {kept: v for kept, v in checked.items() if kept.lower() != name.lower()}
        checked[name] = value
    return checked


def _text(value: Any, what: str) -> str:
    if not isinstance(value, bytes):
        raise HostCallError(f"http: the {what} must be a string")
    try:
        return value.decode("latin-1" if "header" in what else "utf-8")
    except UnicodeDecodeError:
        raise HostCallError(f"http: the {what} is not UTF-8") from None


def _follow(request: _Request, ends_at: float) -> _Response:
    for _ in range(MAX_REDIRECTS + 1):
        response = _exchange(request, ends_at)
        location = response.headers.get("location")
        if response.status not in {301, 302, 303, 307, 308} or not location:
            return response
        request = _redirected(request, response.status, location)
    raise HostCallError(f"http: more than {MAX_REDIRECTS} redirects")


def _redirected(request: _Request, status: int, location: str) -> _Request:
    """The next request of a redirect (RFC 9110, 15.4), without credentials for another origin."""
    url = urljoin(request.url, location)
    dropped: frozenset[str] = frozenset()
    method, body = request.method, request.body
    if (status == 303 and method != "HEAD") or (status in {301, 302} and method == "POST"):
        method, body, dropped = "GET", None, _BODY_HEADERS
    if _origin(_parsed(url)) != _origin(_parsed(request.url)):
        dropped |= _CREDENTIAL_HEADERS
    headers = {n: v for n, v in request.headers.items() if n.lower() not in dropped}
    return _Request(method, url, headers, body)


def _exchange(request: _Request, ends_at: float) -> _Response:
    url = _parsed(request.url)
    address = _permitted_address(url, ends_at)
    pool = _pool_to(url, address, _remaining(ends_at))
    with pool, _connection_ends_at(pool, ends_at):
        response = pool.urlopen(
            request.method,
            url.request_uri,
            body=request.body,
            headers={"Host": url.netloc or "", **request.headers},
            redirect=False,
            retries=False,
            preload_content=False,
            decode_content=False,
            timeout=Timeout(connect=_remaining(ends_at), read=_remaining(ends_at)),
        )
        return _Response(
            status=response.status,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=_read(response, ends_at),
        )


def _parsed(text: str) -> Url:
    try:
        url = parse_url(text)
    except LocationParseError:
        raise HostCallError("http: the URL is malformed") from None
    if url.scheme not in {"http", "https"} or not url.host:
        raise HostCallError("http: the URL must begin with http:// or https://")
    if url.auth is not None:
        raise HostCallError("http: no user name or password in a URL; set Authorization instead")
    return url


def _origin(url: Url) -> tuple[str | None, str | None, int]:
    return url.scheme, url.host, _port(url)


def _port(url: Url) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _permitted_address(url: Url, ends_at: float) -> IPAddress:
    host = (url.host or "").removeprefix("[").removesuffix("]")
    try:
        addresses = resolve(host, _port(url), _remaining(ends_at))
    except socket.gaierror:
        raise HostCallError("http: the host name is not known") from None
    permitted = [a for a in addresses if is_allowed(a, settings.HTTP_ALLOWED_NETWORKS)]
    if not permitted:
        raise HostCallError("http: this address is not public, and so not allowed")
    return permitted[0]


def _pool_to(url: Url, address: IPAddress, seconds: float) -> HTTPConnectionPool:
    host, port = str(address), _port(url)
    if url.scheme == "http":
        return HTTPConnectionPool(host, port, maxsize=1)
    return HTTPSConnectionPool(
        host,
        port,
        maxsize=1,
        cert_reqs="CERT_REQUIRED",
        ca_certs=settings.HTTP_CA_BUNDLE or certifi.where(),
        server_hostname=url.host,
        assert_hostname=url.host,
    )


@contextmanager
def _connection_ends_at(pool: HTTPConnectionPool, ends_at: float) -> Iterator[None]:
    """Shuts the connection at that instant: a timeout bounds only each single read of it."""
    sockets: list[socket.socket] = []

    class Watched(pool.ConnectionCls):  # type: ignore[name-defined]
        def _new_conn(self) -> socket.socket:
            sockets.append(super()._new_conn())
            return sockets[-1]

        def connect(self) -> None:
            super().connect()
            sockets.append(self.sock)

    pool.ConnectionCls = Watched
    timer = threading.Timer(_remaining(ends_at), _shut_down, [sockets])
    timer.daemon = True
    timer.start()
    try:
        yield
        _remaining(ends_at)
    finally:
        timer.cancel()


def _shut_down(sockets: list[socket.socket]) -> None:
    for connected in sockets:
        # Closed by now, or handed over to its TLS successor, which is in the list too.
        with suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)


def _read(response: urllib3.BaseHTTPResponse, ends_at: float) -> bytes:
    body = bytearray()
    for chunk in response.stream(64 * 1024, decode_content=False):
        body += chunk
        if len(body) > MAX_RESPONSE_BYTES:
            raise HostCallError("http: the answer is larger than 2 MiB")
        _remaining(ends_at)
    return bytes(body)


def _remaining(ends_at: float) -> float:
    seconds = ends_at - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


def _reason(error: Exception) -> str:
    """What the script is told: the kind of failure, no address of ours."""
    reasons = {
        urllib3.exceptions.SSLError: "the certificate or the TLS handshake is not good",
        urllib3.exceptions.NewConnectionError: "no connection could be made",
        urllib3.exceptions.TimeoutError: "no answer in time",
        urllib3.exceptions.ProtocolError: "the connection broke or the answer is no HTTP",
    }
    return next(
        (text for kind, text in reasons.items() if isinstance(error, kind)),
        "the request failed",
    )
