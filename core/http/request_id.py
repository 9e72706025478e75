"""The id of each request, sent in a response header and problem documents, and logged."""

import secrets
from collections.abc import Callable
from typing import Protocol

from django.http import HttpRequest, HttpResponse

HEADER = "X-Request-Id"


class NamedRequest(Protocol):
    """A request, of Django or not, as log events and problems name it."""

    @property
    def method(self) -> str | None: ...

    @property
    def path(self) -> str: ...


def new_request_id() -> str:
    """32 random hex digits; ids sent by clients are ignored."""
    return secrets.token_hex(16)


class RequestIdMiddleware:
    """Sets ``request.request_id`` and the response header."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.request_id = new_request_id()  # type: ignore[attr-defined]
        response = self._get_response(request)
        response[HEADER] = request.request_id  # type: ignore[attr-defined]
        return response


def request_id_of(request: NamedRequest) -> str:
    return getattr(request, "request_id", "")
