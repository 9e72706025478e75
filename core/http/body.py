"""Reading a request's body, with a limit: as the bytes that were sent, or as one JSON object."""

import json
import re
from collections.abc import Mapping
from typing import Any, Protocol

from django.conf import settings
from django.http import HttpRequest

from core.http.problems import Problem, ProblemCode

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


class MalformedJson(ValueError):
    """The body is not JSON in UTF-8, or not an object."""


class NotAnObject(MalformedJson):
    """The body is JSON, but not an object."""


def parse_json_object(body: bytes) -> dict[str, Any]:
    """Parse one JSON object in UTF-8, by RFC 8259 alone: no NaN, Infinity or byte order mark.

    Strings may hold lone surrogates (``"\\ud800"``), which cannot be encoded: a caller that names
    the wrong field checks them there.

    Raises ``MalformedJson``; ``NotAnObject`` for other JSON values.
    """
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise MalformedJson("The body is not JSON in UTF-8.") from None
    if not isinstance(value, dict):
        raise NotAnObject("The body must be one JSON object.")
    return value


def read_json_object(request: HttpRequest) -> dict[str, Any]:
    """Read the ``application/json`` body of a REST request, of at most ``REST_MAX_BODY_BYTES``.

    Replaces REST framework's parsers, which take a chunked body for an empty one.

    Raises ``Problem``.
    """
    if request.content_type != "application/json":
        raise Problem(ProblemCode.UNSUPPORTED_MEDIA_TYPE)
    try:
        return parse_json_object(read_body(request, settings.REST_MAX_BODY_BYTES))
    except BodyTooLarge:
        raise Problem(
            ProblemCode.BODY_TOO_LARGE,
            f"The body may have at most {settings.REST_MAX_BODY_BYTES} bytes.",
        ) from None
    except (BodyIncomplete, MalformedJson):
        raise Problem(ProblemCode.MALFORMED_BODY) from None


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
