"""Reading a request's body, with a limit, as the bytes that were sent."""

import re
from collections.abc import Mapping
from typing import Any, Protocol

from django.http import HttpRequest

READ_SIZE_BYTES = 64 * 1024

_LENGTH = re.compile(r"[0-9]{1,18}")


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class BodyTooLarge(Exception):
    """The body has more bytes than allowed."""


class BodyIncomplete(Exception):
    """The body ended early, or its length is unknown."""


def read_body(request: HttpRequest, max_bytes: int) -> bytes:
    """Read the body of one of Django's requests, which it may have read; see ``read_body_of``."""
    return _read(request.META, request, max_bytes)


def read_body_of(environ: Mapping[str, Any], max_bytes: int) -> bytes:
    """Read the body, sent with ``Content-Length`` or chunked; ``b""`` if there is none.

    Call it once, because it consumes the stream: at most ``max_bytes + 1`` bytes, and none if the
    declared length is larger than ``max_bytes``. Django's ``request.body`` takes a chunked body for
    an empty one, because WSGI does not tell where it ends (PEP 3333); servers that decode chunks
    set ``wsgi.input_terminated``.

    Raises ``BodyTooLarge`` and ``BodyIncomplete``.
    """
    return _read(environ, environ["wsgi.input"], max_bytes)


def _read(environ: Mapping[str, Any], stream: _Readable, max_bytes: int) -> bytes:
    declared = environ.get("CONTENT_LENGTH")
    if declared not in (None, ""):
        return _read_declared(stream, _length(str(declared)), max_bytes)
    if environ.get("wsgi.input_terminated"):
        return _read_to_end(environ["wsgi.input"], max_bytes)
    if "HTTP_TRANSFER_ENCODING" in environ:
        raise BodyIncomplete("This server does not accept chunked bodies.")
    return b""


def _length(declared: str) -> int:
    if not _LENGTH.fullmatch(declared):
        raise BodyIncomplete("Content-Length is not a number of bytes.")
    return int(declared)


def _read_declared(stream: _Readable, length: int, max_bytes: int) -> bytes:
    if length > max_bytes:
        raise BodyTooLarge
    try:
        body = stream.read(length)
    except OSError as error:
        raise BodyIncomplete("The client disconnected before its body was read.") from error
    if len(body) < length:
        raise BodyIncomplete("The body is shorter than its Content-Length.")
    return body


def _read_to_end(stream: _Readable, max_bytes: int) -> bytes:
    body = bytearray()
    while len(body) <= max_bytes:
        try:
            part = stream.read(min(READ_SIZE_BYTES, max_bytes + 1 - len(body)))
        # WSGI does not define an exception for malformed chunks; each server raises its own.
        except Exception as error:
            raise BodyIncomplete("The chunked body is malformed or ended early.") from error
        if not part:
            return bytes(body)
        body += part
    raise BodyTooLarge
