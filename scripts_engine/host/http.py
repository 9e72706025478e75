"""http.request: bounded HTTP requests to the public internet, sent by this process for a script.

Against server-side request forgery (SSRF), a host name is resolved once, the addresses are
checked, and the connection goes to a checked address, with the name in the Host header and in
the certificate check. Every redirect is checked in the same way. Proxy settings of the environment
are ignored, and no cookies or credentials of this process are sent.
"""

import re
import time
import uuid
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

import certifi
from django.conf import settings
from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url
from urllib3.util.url import Url

from scripts_engine.host.http_exchange import Endpoint, Response, exchange
from scripts_engine.host.public_addresses import IPAddress, is_allowed
from scripts_engine.host.resolver import resolver
from scripts_engine.sandbox.contract import HostCallError
from scripts_engine.sandbox.limits import KIB, MAX_HEADER_BYTES, MAX_HEADERS

MAX_CALLS = 20
MAX_SECONDS = 5.0
MAX_REDIRECTS = 5
MAX_URL_BYTES = 8 * KIB
# The limit of the DNS.
MAX_HOST_BYTES = 253
# Longer names are left out of error messages: a name may contain a secret, and a truncated secret
# would not be redacted.
MAX_SHOWN_NAME_BYTES = 100

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FORBIDDEN_IN_VALUES = re.compile(r"[\r\n\0]")
# Allowed in the request line and in Host.
_VISIBLE_ASCII = re.compile(r"[!-~]+")
# Headers that frame the message or name its endpoints: only this process sets them.
_RESERVED_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade",
     "keep-alive", "proxy-authorization", "proxy-connection", "expect"}
)  # fmt: skip
_CREDENTIAL_HEADERS = frozenset({"authorization", "cookie"})
_BODY_HEADERS = frozenset({"content-type", "content-encoding", "content-language"})
_DEFAULT_HEADERS = {"User-Agent": "Moonhook", "Accept-Encoding": "identity"}


@dataclass(frozen=True)
class _Request:
    method: str
    url: Url
    headers: dict[str, str]
    body: bytes | None


class HttpCapability:
    """HTTP for one run, with its limit on calls."""

    def __init__(self, organisation_id: uuid.UUID) -> None:
        self._tenant = str(organisation_id)
        self._calls = 0

    def request(self, options: Any, *, deadline: float) -> dict[bytes, Any]:
        """Takes ``{method, url, headers, body?, timeout?}``, returns ``{status, headers, body}``.

        Raises ``HostCallError`` with a message for the script.
        """
        self._calls += 1
        if self._calls > MAX_CALLS:
            raise HostCallError(f"http: more than {MAX_CALLS} calls in a run")
        request, seconds = _parse_options(options)
        ends_at = min(deadline, time.monotonic() + seconds)
        try:
            response = self._exchange_following_redirects(request, ends_at)
        except TimeoutError:
            raise HostCallError(f"http: no complete response within {seconds:g} s") from None
        return {
            b"status": response.status,
            b"headers": {
                name.encode("latin-1"): value.encode("latin-1")
                for name, value in response.headers.items()
            },
            b"body": response.body,
        }

    def _exchange_following_redirects(self, request: _Request, ends_at: float) -> Response:
        for _ in range(MAX_REDIRECTS + 1):
            response = self._exchange(request, ends_at)
            location = response.headers.get("location")
            if response.status not in {301, 302, 303, 307, 308} or not location:
                return response
            request = _redirected_request(request, response.status, location)
        raise HostCallError(f"http: more than {MAX_REDIRECTS} redirects")

    def _exchange(self, request: _Request, ends_at: float) -> Response:
        url = request.url
        host = _host(url)
        return exchange(
            Endpoint(
                address=self._allowed_address(host, _port(url), ends_at),
                port=_port(url),
                tls_name=host.removesuffix(".") if url.scheme == "https" else None,
            ),
            request.method,
            url.request_uri,
            {"Host": url.netloc or "", **request.headers},
            request.body,
            ca_bundle=settings.HTTP_CA_BUNDLE or certifi.where(),
            ends_at=ends_at,
        )

    def _allowed_address(self, host: str, port: int, ends_at: float) -> IPAddress:
        try:
            addresses = resolver.resolve(host, port, tenant=self._tenant, ends_at=ends_at)
        except TimeoutError:
            raise
        except OSError:
            raise HostCallError("http: the host name is unknown") from None
        allowed = [a for a in addresses if is_allowed(a, settings.HTTP_ALLOWED_NETWORKS)]
        if not allowed:
            raise HostCallError("http: this address is not public, and so not allowed")
        return allowed[0]


def _parse_options(options: Any) -> tuple[_Request, float]:
    if not isinstance(options, dict):
        raise HostCallError("http: wrong arguments")
    method = _text(options.get(b"method"), "method").upper()
    if method not in _METHODS:
        raise HostCallError(f"http: the method must be one of {', '.join(sorted(_METHODS))}")
    url = _parse_url(_text(options.get(b"url"), "url"))
    headers = _parse_headers(options.get(b"headers", {}))
    body = options.get(b"body")
    if body is not None and not isinstance(body, bytes):
        raise HostCallError("http: the body must be a string")
    timeout = options.get(b"timeout", MAX_SECONDS)
    if not isinstance(timeout, int | float) or not 0 < timeout <= MAX_SECONDS:
        raise HostCallError(f"http: the timeout must be over 0 and at most {MAX_SECONDS:g} s")
    return _Request(method, url, headers, body), float(timeout)


def _parse_headers(headers: Any) -> dict[str, str]:
    """Validates the script's headers and adds the default ones."""
    if not isinstance(headers, dict):
        raise HostCallError("http: headers must be a table")
    if len(headers) > MAX_HEADERS:
        raise HostCallError(f"http: more than {MAX_HEADERS} headers")
    checked: dict[str, str] = {}
    given: set[str] = set()
    size_bytes = 0
    for raw_name, raw_value in headers.items():
        name, value = _text(raw_name, "header name"), _text(raw_value, "header value")
        size_bytes += len(name) + len(value)
        if size_bytes > MAX_HEADER_BYTES:
            raise HostCallError(f"http: more than {MAX_HEADER_BYTES // KIB} KiB of headers")
        if not _HEADER_NAME.fullmatch(name) or _FORBIDDEN_IN_VALUES.search(value):
            raise HostCallError("http: a header contains characters that are not allowed")
        if name.lower() in _RESERVED_HEADERS:
            raise HostCallError(f"http: a script may not set the header {name}")
        if name.lower() in given:
            shown = f"the header {name}" if len(name) <= MAX_SHOWN_NAME_BYTES else "a header"
            raise HostCallError(f"http: {shown} is given twice")
        given.add(name.lower())
        checked[name] = value
    return {n: v for n, v in _DEFAULT_HEADERS.items() if n.lower() not in given} | checked


def _text(value: Any, what: str) -> str:
    if not isinstance(value, bytes):
        raise HostCallError(f"http: the {what} must be a string")
    try:
        return value.decode("latin-1" if "header" in what else "utf-8")
    except UnicodeDecodeError:
        raise HostCallError(f"http: the {what} is not UTF-8") from None


def _parse_url(text: str) -> Url:
    if len(text.encode()) > MAX_URL_BYTES:
        raise HostCallError(f"http: the URL is longer than {MAX_URL_BYTES // KIB} KiB")
    try:
        url = parse_url(text)
    except LocationParseError:
        raise HostCallError("http: the URL is malformed") from None
    if url.scheme not in {"http", "https"} or not url.host:
        raise HostCallError("http: the URL must begin with http:// or https://")
    if url.auth is not None:
        raise HostCallError("http: credentials belong in the Authorization header, not the URL")
    # A zone (fe80::1%eth0) has a meaning on this machine only.
    if len(url.host) > MAX_HOST_BYTES or "%" in url.host:
        raise HostCallError("http: the URL is malformed")
    if not _VISIBLE_ASCII.fullmatch(f"{url.netloc}{url.request_uri}"):
        raise HostCallError("http: the URL is malformed")
    return url


def _redirected_request(request: _Request, status: int, location: str) -> _Request:
    """The request that follows a redirect (RFC 9110, 15.4).

    Credentials are dropped when the origin changes.
    """
    try:
        url = _parse_url(urljoin(request.url.url, location))
    except ValueError:
        raise HostCallError("http: the URL of a redirect is malformed") from None
    dropped: frozenset[str] = frozenset()
    method, body = request.method, request.body
    if (status == 303 and method != "HEAD") or (status in {301, 302} and method == "POST"):
        method, body, dropped = "GET", None, _BODY_HEADERS
    if _origin(url) != _origin(request.url):
        dropped |= _CREDENTIAL_HEADERS
    headers = {n: v for n, v in request.headers.items() if n.lower() not in dropped}
    return _Request(method, url, headers, body)


def _host(url: Url) -> str:
    """The host, without the brackets of an IPv6 address."""
    return (url.host or "").removeprefix("[").removesuffix("]")


def _origin(url: Url) -> tuple[str | None, str | None, int]:
    return url.scheme, url.host, _port(url)


def _port(url: Url) -> int:
    return url.port or (443 if url.scheme == "https" else 80)
