"""One HTTP/1.1 request and its response, over a connection of their own.

h11 implements the protocol; this module reads and writes the socket. Every wait ends at the
deadline, and limits bound the work that a hostile server can cause.
"""

import re
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import h11

from scripts_engine.host.capabilities import remaining
from scripts_engine.host.resolver import IPAddress
from scripts_engine.sandbox import KIB, MAX_HEADER_BYTES, MAX_HEADERS, MIB, HostCallError

MAX_RESPONSE_BYTES = 2 * MIB
MAX_INTERIM_RESPONSES = 10
# Allows chunks of 256 bytes in the largest response; each chunk costs about 15 µs.
MAX_CHUNKS = 8 * KIB
# Includes heads, chunk framing and chunk extensions.
MAX_RECEIVED_BYTES = 2 * MAX_RESPONSE_BYTES
# The received part of an incomplete head or line.
MAX_UNREAD_BYTES = MAX_HEADER_BYTES + 4 * KIB
READ_BYTES = 16 * KIB
_HEAD_END = re.compile(rb"\n\r?\n")
# Consecutive whitespace outside of content: h11's regular expressions take time quadratic in it.
MAX_WHITESPACE = 256
_TOO_MUCH_WHITESPACE = re.compile(rb"[ \t\r\n]{%d}" % (MAX_WHITESPACE + 1))

# h11's status hint for a head or line over max_incomplete_event_size.
_TOO_LARGE = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE


@dataclass(frozen=True)
class Endpoint:
    """The server, at the address that was checked."""

    address: IPAddress
    port: int
    tls_name: str | None
    """The host name or address that the certificate must match; ``None`` means no TLS."""


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    """Keyed by lower-case name; repeated headers are joined with ", "."""
    body: bytes


def exchange(
    endpoint: Endpoint,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes | None,
    *,
    ca_bundle: str,
    ends_at: float,
) -> Response:
    """Sends the request and reads the response.

    Raises ``TimeoutError`` at the deadline, and ``HostCallError`` with a message for the script.
    """
    protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_UNREAD_BYTES)
    head, rest = _serialise(protocol, method, target, headers, body)
    with _connected(endpoint, ca_bundle, ends_at) as connection:
        try:
            _send(connection, head, ends_at)
            # A server may respond and close before it has read the whole body.
            with suppress(BrokenPipeError):
                _send(connection, rest, ends_at)
            return ResponseReader(connection, protocol, ends_at).response()
        except TimeoutError:
            raise
        except (OSError, h11.RemoteProtocolError) as error:
            if getattr(error, "error_status_hint", None) == _TOO_LARGE:
                raise _too_many_headers() from None
            raise HostCallError("the connection broke or the response is not HTTP") from None


@contextmanager
def _connected(endpoint: Endpoint, ca_bundle: str, ends_at: float) -> Iterator[socket.socket]:
    address = (str(endpoint.address), endpoint.port)
    try:
        connection = socket.create_connection(address, timeout=remaining(ends_at))
    except TimeoutError:
        raise
    except OSError:
        raise HostCallError("the connection failed") from None
    with connection:
        if endpoint.tls_name is None:
            yield connection
            return
        context = _tls_context(ca_bundle)
        connection.settimeout(remaining(ends_at))
        try:
            secured = context.wrap_socket(connection, server_hostname=endpoint.tls_name)
        except TimeoutError:
            raise
        except (OSError, ValueError):
            raise HostCallError(
                "TLS handshake failed or certificate not valid",
                hint="HTTP_CA_BUNDLE sets the certificate authorities that scripts trust",
            ) from None
        with secured:
            yield secured


@lru_cache(maxsize=4)
def _tls_context(ca_bundle: str) -> ssl.SSLContext:
    """Cached, because loading a CA bundle takes about 25 ms."""
    context = ssl.create_default_context(cafile=ca_bundle)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _serialise(
    protocol: h11.Connection,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes | None,
) -> tuple[bytes, bytes]:
    """The bytes of the head and those of the body. Raises ``HostCallError``."""
    fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    if body is not None or method in {"POST", "PUT", "PATCH"}:
        fields.append((b"Content-Length", b"%d" % len(body or b"")))
    fields.append((b"Connection", b"close"))
    try:
        request = h11.Request(method=method, target=target, headers=fields)
    except h11.LocalProtocolError:
        raise HostCallError("a header contains characters that are not allowed") from None
    head = protocol.send(request) or b""
    rest = protocol.send(h11.Data(data=body)) if body else None
    return head, (rest or b"") + (protocol.send(h11.EndOfMessage()) or b"")


def _send(connection: socket.socket, data: bytes, ends_at: float) -> None:
    rest = memoryview(data)
    while rest:
        connection.settimeout(remaining(ends_at))
        rest = rest[connection.send(rest) :]


class _Part(Enum):
    """The part of the response that h11 reads next."""

    HEAD = auto()
    """Also the trailer."""
    CHUNK_SIZE = auto()
    CONTENT = auto()


class ResponseReader:
    """Reads one response; all its heads and its trailer share the header limits."""

    def __init__(self, connection: socket.socket, protocol: h11.Connection, ends_at: float) -> None:
        self._connection = connection
        self._protocol = protocol
        self._ends_at = ends_at
        self._next = _Part.HEAD
        self._received_bytes = 0
        self._header_count = 0
        self._header_bytes = 0

    def response(self) -> Response:
        head = self._head()
        body = bytearray()
        chunks = 0
        is_chunked = any(name == b"transfer-encoding" for name, _ in head.headers)
        self._next = _Part.CHUNK_SIZE if is_chunked else _Part.CONTENT
        while not isinstance(event := self._next_event(), h11.EndOfMessage):
            if event.chunk_end:
                chunks += 1
                self._next = _Part.CHUNK_SIZE
            body += event.data
            if len(body) > MAX_RESPONSE_BYTES:
                raise _too_large()
            if chunks > MAX_CHUNKS:
                raise HostCallError(f"the response has more than {MAX_CHUNKS:,} chunks")
        self._count(event.headers)
        return Response(head.status_code, _joined(head.headers), bytes(body))

    def _head(self) -> h11.Response:
        interim_responses = 0
        while isinstance(event := self._next_event(), h11.InformationalResponse):
            self._count(event.headers)
            interim_responses += 1
            if interim_responses > MAX_INTERIM_RESPONSES:
                raise HostCallError(f"more than {MAX_INTERIM_RESPONSES} interim responses")
        self._count(event.headers)
        return event

    def _next_event(self) -> Any:
        """The next h11 event, from as many bytes as it takes."""
        while (event := self._read_received()) is h11.NEED_DATA:
            self._connection.settimeout(remaining(self._ends_at))
            data = self._connection.recv(READ_BYTES)
            self._received_bytes += len(data)
            if self._received_bytes > MAX_RECEIVED_BYTES:
                raise _too_large()
            self._protocol.receive_data(data)
        remaining(self._ends_at)
        return event

    def _read_received(self) -> Any:
        if self._next is not _Part.CONTENT:
            self._check_whitespace()
        return self._protocol.next_event()

    def _check_whitespace(self) -> None:
        """Checks the bytes that h11 reads next, except content, which may contain anything."""
        received, _ = self._protocol.trailing_data
        framing = received
        if self._next is _Part.CHUNK_SIZE:
            # The line may follow the line end of the previous chunk.
            framing = received[: received.find(b"\n", 2) + 1 or len(received)]
            if framing.endswith(b"\n"):
                is_last = not framing.partition(b";")[0].strip(b"0 \t\r\n")
                self._next = _Part.HEAD if is_last else _Part.CONTENT
        if self._next is _Part.HEAD:
            end = _HEAD_END.search(received)
            framing = received[: end.end()] if end else received
        if _TOO_MUCH_WHITESPACE.search(framing):
            raise HostCallError(
                f"the response has more than {MAX_WHITESPACE} whitespace characters in a row"
            )

    def _count(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        fields = list(headers)
        self._header_count += len(fields)
        self._header_bytes += sum(len(name) + len(value) for name, value in fields)
        if self._header_count > MAX_HEADERS or self._header_bytes > MAX_HEADER_BYTES:
            raise _too_many_headers()


def _joined(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name.decode("ascii"), []).append(value.decode("latin-1"))
    return {name: ", ".join(texts) for name, texts in values.items()}


def _too_large() -> HostCallError:
    return HostCallError(f"the response is larger than {MAX_RESPONSE_BYTES // MIB} MiB")


def _too_many_headers() -> HostCallError:
    return HostCallError(
        f"the response has more than {MAX_HEADERS} headers or {MAX_HEADER_BYTES // KIB} KiB of them"
    )
