"""A WSGI application for tests that fails where its path says."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.core.wsgi import get_wsgi_application

# The worker's own services need Django.
get_wsgi_application()

ERRORS = {"value": ValueError("on purpose"), "file": OSError(5, "on purpose")}


class FailsAtTheEnd:
    """Pieces of a reply that fail when the server closes them."""

    def __init__(self, pieces: Iterator[bytes], error: Exception) -> None:
        self._pieces = pieces
        self._error = error

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def close(self) -> None:
        raise self._error


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    when, _, error = environ["PATH_INFO"].strip("/").partition("/")
    if when == "at-once":
        raise ERRORS[error]
    start_response("200 OK", [("Content-Length", "10")])
    pieces = _pieces(when, error)
    return FailsAtTheEnd(pieces, ERRORS[error]) if when == "after-the-body" else pieces


def _pieces(when: str, error: str) -> Iterator[bytes]:
    if when == "before-the-body":
        raise ERRORS[error]
    yield b"01234"
    if when == "in-the-body":
        raise ERRORS[error]
    yield b"56789"
