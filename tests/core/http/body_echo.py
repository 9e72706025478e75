"""A WSGI application for tests that returns a fingerprint of the body, or the error's name."""

from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

from django.core.handlers.wsgi import WSGIRequest

from core.http.body import BodyIncomplete, BodyTooLarge, read_body

MAX_BYTES = 100_000


def fingerprint(body: bytes) -> str:
    return f"{len(body)} {sha256(body).hexdigest()}"


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    try:
        line = fingerprint(read_body(WSGIRequest(environ), MAX_BYTES))
    except (BodyTooLarge, BodyIncomplete) as error:
        line = type(error).__name__
    headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(line)))]
    start_response("200 OK", headers)
    return [line.encode()]
