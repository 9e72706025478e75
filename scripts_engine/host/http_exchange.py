"""One HTTP/1.1 request and its response over a connection of their own.

The standard client bounds neither interim responses nor chunks nor trailers, and waits anew for
every byte. Here every wait ends at the deadline, and whatever the server sends costs at most what
the limits say.
"""

import io
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache

from scripts_engine.host.deadline import remaining
from scripts_engine.host.public_addresses import IPAddress
from scripts_engine.sandbox.host_call import HostCallError
from scripts_engine.sandbox.limits import KIB, MAX_HEADER_BYTES, MAX_HEADERS, MIB

MAX_RESPONSE_BYTES = 2 * MIB
MAX_INTERIM_RESPONSES = 10
# Chunks of 128 bytes at the largest response.
MAX_CHUNKS = 16 * KIB
# A header that fills its limit, and the spaces and line end around it.
MAX_LINE_BYTES = MAX_HEADER_BYTES + KIB
MAX_CHUNK_LINE_BYTES = 256
READ_BYTES = 64 * KIB

_STATUS_LINE = re.compile(rb"HTTP/1\.[0-9] ([1-9][0-9][0-9])(?: .*)?")
_FIELD_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FORBIDDEN_IN_LINES = re.compile(rb"[\0\r]")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;.*)?", re.DOTALL)
_SPACE = b" \t"
_WITHOUT_BODY = frozenset({204, 304})


@dataclass(frozen=True)
class Endpoint:
    """The server, by the address that was judged."""

    address: IPAddress
    port: int
    tls_name: str | None
    """The host name or address that the certificate must be for; ``None``: no TLS."""


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    """By lower-case name; one that came more than once is joined with ", "."""
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
    """Send the request, read the response.

    Raises ``TimeoutError`` at the deadline, and ``HostCallError``.
    """
    with _connected(endpoint, ca_bundle, ends_at) as connection:
        try:
            _send(connection, _head(method, target, headers, body), ends_at)
            # A server may answer and hang up before it has read everything.
            with suppress(BrokenPipeError):
                _send(connection, body or b"", ends_at)
            return _Reader(connection, ends_at).response(method)
        except TimeoutError:
            raise
        except OSError:
            raise _broken() from None


@contextmanager
def _connected(endpoint: Endpoint, ca_bundle: str, ends_at: float) -> Iterator[socket.socket]:
    address = (str(endpoint.address), endpoint.port)
    try:
        connection = socket.create_connection(address, timeout=remaining(ends_at))
    except TimeoutError:
        raise
    except OSError:
        raise HostCallError("http: no connection could be made") from None
    with connection:
        if endpoint.tls_name is None:
            yield connection
            return
        context = _tls(ca_bundle)
        connection.settimeout(remaining(ends_at))
        try:
            secured = context.wrap_socket(connection, server_hostname=endpoint.tls_name)
        except TimeoutError:
            raise
        except (OSError, ValueError):
            raise HostCallError("http: the certificate or the TLS handshake is not good") from None
        with secured:
            yield secured


@lru_cache(maxsize=4)
def _tls(ca_bundle: str) -> ssl.SSLContext:
    """Kept, because reading a bundle takes some 25 ms."""
    context = ssl.create_default_context(cafile=ca_bundle)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _head(method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    """Everything was checked: no part holds a line break."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {headers[name]}" for name in headers)]
    if body is not None or method in {"POST", "PUT", "PATCH"}:
        lines.append(f"Content-Length: {len(body or b'')}")
    lines.append("Connection: close")
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode("latin-1")


def _send(connection: socket.socket, data: bytes, ends_at: float) -> None:
    rest = memoryview(data)
    while rest:
        connection.settimeout(remaining(ends_at))
        rest = rest[connection.send(rest) :]


class _Incoming(io.RawIOBase):
    """What a socket receives, until the deadline."""

    def __init__(self, connection: socket.socket, ends_at: float) -> None:
        self._connection = connection
        self._ends_at = ends_at

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._connection.settimeout(remaining(self._ends_at))
        return self._connection.recv_into(buffer)


class _Reader:
    """Reads one response (RFC 9112). All its heads and its trailer share the header limits."""

    def __init__(self, connection: socket.socket, ends_at: float) -> None:
        self._file = io.BufferedReader(_Incoming(connection, ends_at), READ_BYTES)
        self._ends_at = ends_at
        self._header_count = 0
        self._header_bytes = 0

    def response(self, method: str) -> Response:
        for _ in range(MAX_INTERIM_RESPONSES + 1):
            status = self._status()
            headers = self._headers()
            if status >= 200:
                return Response(status, headers, self._body(method, status, headers))
        raise HostCallError(f"http: more than {MAX_INTERIM_RESPONSES} interim responses")

    def _status(self) -> int:
        match = _STATUS_LINE.fullmatch(self._line())
        if match is None:
            raise _broken()
        return int(match[1])

    def _headers(self) -> dict[str, str]:
        values: dict[str, list[str]] = {}
        latest: list[str] | None = None
        while line := self._line():
            if line[0] in _SPACE and latest is not None:
                # Obsolete line folding: the value before goes on.
                self._count_header(b"", line.strip(_SPACE))
                latest[-1] += " " + line.strip(_SPACE).decode("latin-1")
                continue
            name, colon, value = line.partition(b":")
            if not colon or not _FIELD_NAME.fullmatch(name):
                raise _broken()
            value = value.strip(_SPACE)
            self._count_header(name, value)
            latest = values.setdefault(name.decode("ascii").lower(), [])
            latest.append(value.decode("latin-1"))
        return {name: ", ".join(texts) for name, texts in values.items()}

    def _count_header(self, name: bytes, value: bytes) -> None:
        self._header_count += 1
        self._header_bytes += len(name) + len(value)
        if self._header_count > MAX_HEADERS or self._header_bytes > MAX_HEADER_BYTES:
            raise _too_many_headers()

    def _body(self, method: str, status: int, headers: Mapping[str, str]) -> bytes:
        if method == "HEAD" or status in _WITHOUT_BODY:
            return b""
        coding = headers.get("transfer-encoding")
        if coding is not None:
            if coding.lower() != "chunked":
                raise HostCallError("http: a transfer coding that was not asked for")
            return self._chunked_body()
        announced = headers.get("content-length")
        if announced is None:
            return self._read_to_end()
        return self._read(_length(announced))

    def _chunked_body(self) -> bytes:
        body = bytearray()
        for _ in range(MAX_CHUNKS + 1):
            match = _CHUNK_SIZE.fullmatch(self._line(MAX_CHUNK_LINE_BYTES))
            if match is None:
                raise _broken()
            size = int(match[1], 16)
            if size == 0:
                self._headers()
                return bytes(body)
            body += self._read(size, already=len(body))
            if self._line():
                raise _broken()
        raise HostCallError(f"http: the answer has more than {MAX_CHUNKS:,} chunks")

    def _read(self, size: int, already: int = 0) -> bytes:
        """Exactly so many bytes."""
        if already + size > MAX_RESPONSE_BYTES:
            raise _too_large()
        data = self._file.read(size)
        if len(data) < size:
            raise _broken()
        return data

    def _read_to_end(self) -> bytes:
        data = self._file.read(MAX_RESPONSE_BYTES + 1)
        if len(data) > MAX_RESPONSE_BYTES:
            raise _too_large()
        return data

    def _line(self, max_bytes: int = MAX_LINE_BYTES) -> bytes:
        """Without its end."""
        remaining(self._ends_at)
        line = self._file.readline(max_bytes + 1)
        if len(line) > max_bytes:
            raise HostCallError("http: the answer has a line that is too long")
        if not line.endswith(b"\n"):
            raise _broken()
        line = line[:-2] if line.endswith(b"\r\n") else line[:-1]
        if _FORBIDDEN_IN_LINES.search(line):
            raise _broken()
        return line


def _length(announced: str) -> int:
    """A Content-Length, which a server may repeat (RFC 9110, 8.6)."""
    lengths = {length.strip() for length in announced.split(",")}
    length = lengths.pop()
    if lengths or not re.fullmatch(r"[0-9]{1,19}", length):
        raise _broken()
    return int(length)


def _broken() -> HostCallError:
    return HostCallError("http: the connection broke or the answer is not HTTP")


def _too_large() -> HostCallError:
    return HostCallError(f"http: the answer is larger than {MAX_RESPONSE_BYTES // MIB} MiB")


def _too_many_headers() -> HostCallError:
    return HostCallError(
        f"http: the answer has more than {MAX_HEADERS} headers"
        f" or {MAX_HEADER_BYTES // KIB} KiB of them"
    )
