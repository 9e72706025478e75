"""A WSGI application for tests that fails where its path says."""

from collections.abc import Callable, Iterator
from typing import Any

from django.core.wsgi import get_wsgi_application

# The worker's own services need Django.
get_wsgi_application()

ERRORS = {"value": ValueError("on purpose"), "file": OSError(5, "on purpose")}


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterator[bytes]:
    when, _, error = environ["PATH_INFO"].strip("/").partition("/")
    if when == "at-once":
        raise ERRORS[error]
    start_response("200 OK", [("Content-Length", "10")])
    return _pieces(when, error)


def _pieces(when: str, error: str) -> Iterator[bytes]:
    if when == "before-the-body":
        raise ERRORS[error]
    yield b"01234"
    if when == "in-the-body":
        raise ERRORS[error]
    yield b"56789"
