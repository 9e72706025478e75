"""http.*: bounded HTTP requests to the public internet, sent by this process for a script.

Against server-side request forgery (SSRF), a host name is resolved once, the addresses are
checked, and the connection goes to a checked address, with the name in the Host header and in
the certificate check. Every redirect is checked in the same way. Proxy settings of the environment
are ignored, and no cookies or credentials of this process are sent.
"""

import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

import certifi
from django.conf import settings
from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url
from urllib3.util.url import Url

from scripts_engine.host.capabilities import SCRIPT_TIMEOUT_HINT
from scripts_engine.host.http_exchange import Endpoint, Response, exchange
from scripts_engine.host.resolver import IPAddress, is_allowed, resolver
from scripts_engine.redaction import Redactor
from scripts_engine.sandbox import KIB, MAX_HEADER_BYTES, MAX_HEADERS, HostCallError

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
# The functions for one method; http.request takes any.
METHOD_OF = {
    f"http.{method.lower()}": method for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
}
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
# The scheme, and the host as it is written, of a URL that ``_parse_url`` accepts.
_WRITTEN_HOST = re.compile(r"[^:/]*://(\[[^]]*\]|[^:/\\?#]*)")
_DEFAULT_HEADERS = {"User-Agent": "Moonhook", "Accept-Encoding": "identity"}


@dataclass(frozen=True)
class _Request:
    method: str
    url: Url
    written_url: str
    """Before it was normalised: in this form, a secret in the host can be recognised."""
    headers: dict[str, str]
    body: bytes | None


class HttpCapability:
    """HTTP for one run, with its limit on calls."""

    def __init__(
        self,
        organisation_id: uuid.UUID,
        revealed_secrets: Callable[[], frozenset[bytes]] = frozenset,
    ) -> None:
        self._tenant = str(organisation_id)
        self._revealed_secrets = revealed_secrets
        self._calls = 0

    def send(self, method: str, options: Any, *, deadline: float) -> dict[bytes, Any]:
        """``request`` for options without a method."""
        if not isinstance(options, dict) or b"method" in options:
            raise HostCallError("wrong arguments")
        return self.request({**options, b"method": method.encode()}, deadline=deadline)

    def request(self, options: Any, *, deadline: float) -> dict[bytes, Any]:
        """Takes ``{method, url, headers, body?, timeout?}``, returns ``{status, headers, body}``.

        Raises ``HostCallError`` with a message for the script.
        """
        self._calls += 1
        if self._calls > MAX_CALLS:
            raise HostCallError(f"more than {MAX_CALLS} calls in a run")
        request, seconds = _parse_options(options)
        ends_at = min(deadline, time.monotonic() + seconds)
        response = self._exchange_following_redirects(request, seconds, ends_at, deadline)
        return {
            b"status": response.status,
            b"headers": {
                name.encode("latin-1"): value.encode("latin-1")
                for name, value in response.headers.items()
            },
            b"body": response.body,
        }

    def _exchange_following_redirects(
        self, request: _Request, seconds: float, ends_at: float, deadline: float
    ) -> Response:
        for _ in range(MAX_REDIRECTS + 1):
            try:
                response = self._exchange(request, ends_at)
            except TimeoutError:
                host = self._shown_host(request)
                raise _timed_out(host, seconds, ends_at == deadline) from None
            location = response.headers.get("location")
            if response.status not in {301, 302, 303, 307, 308} or not location:
                return response
            request = _redirected_request(request, response.status, location)
        raise HostCallError(f"more than {MAX_REDIRECTS} redirects")

    def _exchange(self, request: _Request, ends_at: float) -> Response:
        url = request.url
        host = _host(url)
        endpoint = Endpoint(
            address=self._allowed_address(request, ends_at),
            port=_port(url),
            tls_name=host.removesuffix(".") if url.scheme == "https" else None,
        )
        try:
            return exchange(
                endpoint,
                request.method,
                url.request_uri,
                {"Host": url.netloc or "", **request.headers},
                request.body,
                ca_bundle=settings.HTTP_CA_BUNDLE or certifi.where(),
                ends_at=ends_at,
            )
        except HostCallError as error:
            raise HostCallError(f"{self._shown_host(request)}: {error}", hint=error.hint) from None

    def _allowed_address(self, request: _Request, ends_at: float) -> IPAddress:
        host, port = _host(request.url), _port(request.url)
        try:
            addresses = resolver.resolve(host, port, tenant=self._tenant, ends_at=ends_at)
        except TimeoutError:
            raise
        except OSError:
            raise HostCallError(f"{self._shown_host(request)} is not a known host name") from None
        allowed = [a for a in addresses if is_allowed(a, settings.HTTP_ALLOWED_NETWORKS)]
        if not allowed:
            raise HostCallError(
                f"{self._shown_host(request)} is not reachable from scripts: "
                "its address is not public",
                hint="an operator can allow its network with HTTP_ALLOWED_NETWORKS",
            )
        return allowed[0]

    def _shown_host(self, request: _Request) -> str:
        """The host for an error message, unless a part of it comes from a secret.

        A part of a secret would not be recognised when the error is recorded.
        """
        host = _written_host(request.written_url)
        redactor = Redactor(self._revealed_secrets())
        redacted = redactor.bytes(request.written_url.encode(), 2 * MAX_URL_BYTES)
        is_secret = _written_host(redacted.decode("utf-8", "replace")) != host
        return "the host" if not host or is_secret or redactor.is_disguised_in(redacted) else host


def shown_request(method: str, url: Any) -> bytes:
    """Method and URL as the script wrote them, or the method alone if the URL is not accepted.

    A refused URL may contain a user name and a password.
    """
    try:
        _parse_url(_text(url, "URL"))
    except HostCallError:
        return method.encode()
    return b"%b %b" % (method.encode(), url)


def method_of(options: Any) -> str:
    """The method of http.request, or an empty text if it is not allowed."""
    method = options.get(b"method") if isinstance(options, dict) else None
    name = method.decode("latin-1").upper() if isinstance(method, bytes) else ""
    return name if name in _METHODS else ""


def _timed_out(host: str, seconds: float, is_end_of_run: bool) -> HostCallError:
    if is_end_of_run:
        return HostCallError(
            f"{host} did not answer before the end of the run", hint=SCRIPT_TIMEOUT_HINT
        )
    hint = (
        f"the timeout option of the call may be up to {MAX_SECONDS:g} s"
        if seconds < MAX_SECONDS
        else f"{MAX_SECONDS:g} s is the maximum for a call, and not a setting"
    )
    return HostCallError(f"{host} did not answer within {seconds:g} s", hint=hint)


def _parse_options(options: Any) -> tuple[_Request, float]:
    if not isinstance(options, dict):
        raise HostCallError("wrong arguments")
    method = _text(options.get(b"method"), "method").upper()
    if method not in _METHODS:
        raise HostCallError(f"the method must be one of {', '.join(sorted(_METHODS))}")
    written = _text(options.get(b"url"), "url")
    url = _parse_url(written)
    headers = _parse_headers(options.get(b"headers", {}))
    body = options.get(b"body")
    if body is not None and not isinstance(body, bytes):
        raise HostCallError("the body must be a string")
    timeout = options.get(b"timeout", MAX_SECONDS)
    if not isinstance(timeout, int | float) or not 0 < timeout <= MAX_SECONDS:
        raise HostCallError(f"the timeout must be over 0 and at most {MAX_SECONDS:g} s")
    return _Request(method, url, written, headers, body), float(timeout)


def _parse_headers(headers: Any) -> dict[str, str]:
    """Validates the script's headers and adds the default ones."""
    if not isinstance(headers, dict):
        raise HostCallError("headers must be a table")
    if len(headers) > MAX_HEADERS:
        raise HostCallError(f"more than {MAX_HEADERS} headers")
    checked: dict[str, str] = {}
    given: set[str] = set()
    size_bytes = 0
    for raw_name, raw_value in headers.items():
        name, value = _text(raw_name, "header name"), _text(raw_value, "header value")
        size_bytes += len(name) + len(value)
        if size_bytes > MAX_HEADER_BYTES:
            raise HostCallError(f"more than {MAX_HEADER_BYTES // KIB} KiB of headers")
        if not _HEADER_NAME.fullmatch(name) or _FORBIDDEN_IN_VALUES.search(value):
            raise HostCallError("a header contains characters that are not allowed")
        if name.lower() in _RESERVED_HEADERS:
            raise HostCallError(f"a script may not set the header {name}")
        if name.lower() in given:
            shown = f"the header {name}" if len(name) <= MAX_SHOWN_NAME_BYTES else "a header"
            raise HostCallError(f"{shown} is given twice")
        given.add(name.lower())
        checked[name] = value
    return {n: v for n, v in _DEFAULT_HEADERS.items() if n.lower() not in given} | checked


def _text(value: Any, what: str) -> str:
    if not isinstance(value, bytes):
        raise HostCallError(f"the {what} must be a string")
    try:
        return value.decode("latin-1" if "header" in what else "utf-8")
    except UnicodeDecodeError:
        raise HostCallError(f"the {what} is not UTF-8") from None


def _parse_url(text: str) -> Url:
    if len(text.encode()) > MAX_URL_BYTES:
        raise HostCallError(f"the URL is longer than {MAX_URL_BYTES // KIB} KiB")
    try:
        url = parse_url(text)
    except LocationParseError:
        raise HostCallError("the URL is malformed") from None
    if url.scheme not in {"http", "https"} or not url.host:
        raise HostCallError("the URL must begin with http:// or https://")
    if url.auth is not None:
        raise HostCallError("credentials belong in the Authorization header, not the URL")
    # A zone (fe80::1%eth0) has a meaning on this machine only.
    if len(url.host) > MAX_HOST_BYTES or "%" in url.host:
        raise HostCallError("the URL is malformed")
    if not _VISIBLE_ASCII.fullmatch(f"{url.netloc}{url.request_uri}"):
        raise HostCallError("the URL is malformed")
    return url


def _redirected_request(request: _Request, status: int, location: str) -> _Request:
    """The request that follows a redirect (RFC 9110, 15.4).

    Credentials are dropped when the origin changes.
    """
    try:
        written = urljoin(request.url.url, location)
        url = _parse_url(written)
    except ValueError:
        raise HostCallError("the URL of a redirect is malformed") from None
    dropped: frozenset[str] = frozenset()
    method, body = request.method, request.body
    if (status == 303 and method != "HEAD") or (status in {301, 302} and method == "POST"):
        method, body, dropped = "GET", None, _BODY_HEADERS
    if _origin(url) != _origin(request.url):
        dropped |= _CREDENTIAL_HEADERS
    headers = {n: v for n, v in request.headers.items() if n.lower() not in dropped}
    if url.host == request.url.host:
        written = request.written_url
    return _Request(method, url, written, headers, body)


def _written_host(url: str) -> str:
    found = _WRITTEN_HOST.match(url)
    return found[1] if found else ""


def _host(url: Url) -> str:
    """The host, without the brackets of an IPv6 address."""
    return (url.host or "").removeprefix("[").removesuffix("]")


def _origin(url: Url) -> tuple[str | None, str | None, int]:
    return url.scheme, url.host, _port(url)


def _port(url: Url) -> int:
    return url.port or (443 if url.scheme == "https" else 80)
