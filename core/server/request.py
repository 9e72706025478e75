"""Reads the head of a request with llhttp, and makes the WSGI environment.

llhttp reads the fields. The request line is read here, because llhttp takes several blanks, methods
of a fixed list only, and protocols other than HTTP. What is refused, and with which status, follows
gunicorn, whose exceptions its worker answers.
"""

import re
from functools import lru_cache
from io import BufferedIOBase
from typing import Any, NamedTuple

from gunicorn.config import Config
from gunicorn.http.errors import (
    ExpectationFailed,
    InvalidHeader,
    InvalidRequestLine,
    LimitRequestHeaders,
    LimitRequestLine,
    UnsupportedTransferCoding,
)
from gunicorn.http.wsgi import base_environ
from gunicorn.util import split_request_uri, unquote_to_wsgi_str
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

# gunicorn's own limits.
MAX_LINE_BYTES = 4094
MAX_FIELD_BYTES = 8190
"""With the line end."""
MAX_FIELDS = 100
_LENGTH_DIGITS = 18
# Names are cached, but not longer ones than these.
_USUAL_NAME_BYTES = 64
# Any method but CONNECT makes llhttp read the fields in the same way.
_LINE_FOR_LLHTTP = b"POST / HTTP/1.1\r\n"
_REQUEST_LINE = re.compile(r"([!$%&'*+.^_`|~0-9A-Z-]{3,20}) ([!-~]+) HTTP/1\.([01])")
_CODINGS = frozenset({b"chunked", b"compress", b"deflate", b"gzip", b"identity"})
# A second one makes it unclear which of them other programs read (RFC 9110, section 5.3). llhttp
# refuses a second Content-Length.
_SINGLE = frozenset({"CONTENT_TYPE", "HTTP_HOST"})


class ReceivedRequest(NamedTuple):
    """The head of a request, with the attributes that gunicorn's response and errors read."""

    line: bytes
    method: str
    uri: str
    path: str
    query: str
    version: tuple[int, int]
    fields: dict[str, str]
    """By their names in the WSGI environment."""
    content_length: int
    is_chunked: bool
    wants_continue: bool
    """Whether the client waits for ``100 Continue`` before it sends the body."""
    closes: bool
    """Whether the connection must be closed after the reply."""
    body: None = None

    def should_close(self) -> bool:
        return self.closes

    def environ(
        self,
        same_for_all: dict[str, Any],
        body: BufferedIOBase,
        client: tuple[Any, ...],
        server: tuple[Any, ...],
    ) -> dict[str, Any]:
        """Returns the WSGI environment (PEP 3333) of a request from the client's address."""
        path = self.path
        return {
            **same_for_all,
            "wsgi.input": body,
            "REQUEST_METHOD": self.method,
            "RAW_URI": self.uri,
            "PATH_INFO": unquote_to_wsgi_str(path) if "%" in path else path,
            "QUERY_STRING": self.query,
            "SERVER_PROTOCOL": "HTTP/1.1" if self.version == (1, 1) else "HTTP/1.0",
            "REMOTE_ADDR": client[0],
            "REMOTE_PORT": str(client[1]),
            "SERVER_NAME": server[0],
            "SERVER_PORT": str(server[1]),
            **self.fields,
        }


def environ_of_all_requests(cfg: Config) -> dict[str, Any]:
    return base_environ(cfg) | {
        "wsgi.multithread": True,
        "wsgi.url_scheme": "http",
        "SCRIPT_NAME": "",
    }


class _Fields(list[tuple[bytes, bytes]]):
    """Collects what llhttp reads."""

    def on_header(self, name: bytes, value: bytes) -> None:
        self.append((name, value))


def read_request(head: bytes) -> ReceivedRequest:
    """``head`` ends with its first empty line. Raises gunicorn's errors."""
    line_end = head.index(b"\r\n")
    if line_end > MAX_LINE_BYTES:
        raise LimitRequestLine(line_end, MAX_LINE_BYTES)
    line = head[:line_end]
    match = _REQUEST_LINE.fullmatch(line.decode("latin-1"))
    if match is None:
        raise InvalidRequestLine(line.decode("latin-1"))
    method, uri, minor_version = match.groups()
    path, query = _path_and_query(method, uri)
    is_old = minor_version == "0"
    fields = _read_fields(head[line_end + 2 :])
    coding = fields.get("HTTP_TRANSFER_ENCODING")
    if coding is not None:
        if is_old:
            raise InvalidHeader("TRANSFER-ENCODING")
        if coding.lower() != "chunked":
            raise UnsupportedTransferCoding(coding)
    length = fields.get("CONTENT_LENGTH", "0")
    if len(length) > _LENGTH_DIGITS:
        raise InvalidHeader("CONTENT-LENGTH")
    expectation = fields.get("HTTP_EXPECT")
    if expectation is not None and _options(expectation) != {"100-continue"}:
        raise ExpectationFailed(expectation)
    return ReceivedRequest(
        line,
        method,
        uri,
        path,
        query,
        (1, 0) if is_old else (1, 1),
        fields,
        int(length),
        coding is not None,
        # An HTTP/1.0 client would take ``100 Continue`` for the reply.
        expectation is not None and not is_old,
        method == "CONNECT" or _ends_connection(fields.get("HTTP_CONNECTION", ""), is_old=is_old),
    )


def _path_and_query(method: str, uri: str) -> tuple[str, str]:
    if uri.startswith("/") and not uri.startswith("//") and "#" not in uri:
        path, _, query = uri.partition("?")
        return path, query
    # RFC 9112, section 3.2: the other forms of a target.
    if uri == "*":
        is_allowed = method == "OPTIONS"
    else:
        is_allowed = uri.startswith("/") or "://" in uri or method == "CONNECT"
    if not is_allowed:
        raise InvalidRequestLine(uri)
    try:
        parts = split_request_uri(uri)
    except ValueError as error:
        raise InvalidRequestLine(uri) from error
    return parts.path, parts.query


def _read_fields(section: bytes) -> dict[str, str]:
    is_large = len(section) > MAX_FIELD_BYTES
    if is_large and max(map(len, section.split(b"\r\n"))) + 2 > MAX_FIELD_BYTES:
        raise LimitRequestHeaders("limit request headers fields size")
    found = _Fields()
    try:
        HttpRequestParser(found).feed_data(_LINE_FOR_LLHTTP + section)
    except HttpParserUpgrade:
        # No other protocol is offered, so the client goes on with this one.
        pass
    except HttpParserError as error:
        raise _refusal(found, error) from error
    if len(found) > MAX_FIELDS:
        raise LimitRequestHeaders("limit request headers fields")
    fields: dict[str, str] = {}
    for name, padded in found:
        key = _environ_key(name) if len(name) <= _USUAL_NAME_BYTES else _make_environ_key(name)
        value = padded.rstrip(b" \t").decode("latin-1")
        if key is None:
            continue
        if key not in fields:
            fields[key] = value
        elif key in _SINGLE:
            raise InvalidHeader(name.decode())
        else:
            fields[key] = f"{fields[key]},{value}"
    return fields


def _refusal(fields: _Fields, error: HttpParserError) -> Exception:
    for name, value in fields:
        codings = {coding.strip(b" \t").lower() for coding in value.split(b",")}
        if name.lower() == b"transfer-encoding" and not codings <= _CODINGS:
            return UnsupportedTransferCoding(value.decode("latin-1"))
    return InvalidHeader(str(error))


def _make_environ_key(name: bytes) -> str | None:
    """The field's name in the environment; ``None`` if it is dropped.

    With an underscore it could pass for another one, such as ``X_Forwarded_For``.
    """
    if b"_" in name:
        return None
    key = name.decode().upper().replace("-", "_")
    return key if key in ("CONTENT_LENGTH", "CONTENT_TYPE") else f"HTTP_{key}"


_environ_key = lru_cache(maxsize=1024)(_make_environ_key)


def _ends_connection(connection: str, *, is_old: bool) -> bool:
    if is_old:
        return _options(connection) != {"keep-alive"}
    return bool(connection) and "close" in _options(connection)


def _options(value: str) -> set[str]:
    return {option.strip(" \t") for option in value.lower().split(",")}
