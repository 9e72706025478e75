"""The id of each request, sent in a response header and problem documents, and logged."""

import secrets
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

HEADER = "X-Request-Id"


class RequestIdMiddleware:
    """Sets ``request.request_id`` (32 hex digits); ids sent by clients are ignored."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.request_id = secrets.token_hex(16)  # type: ignore[attr-defined]
        response = self._get_response(request)
        response[HEADER] = request.request_id  # type: ignore[attr-defined]
        return response


def request_id_of(request: HttpRequest) -> str:
    return getattr(request, "request_id", "")
