"""The WSGI application of every path under /hook/, which does not pass through Django's handler.

A call needs no middleware, URL resolver, session or form, and Django's requests and responses cost
more than finding its hook. The rules that hold for every URL of the server are functions in core/,
which Django's middleware uses too.
"""

import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from http.client import responses as REASONS  # noqa: N812
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.signals import got_request_exception, request_finished, request_started

from core.http.django_rules import require_allowed_host, scheme_of, security_headers
from core.http.problems import Problem, ProblemCode
from core.http.request_id import HEADER
from core.logs.context import bind_request
from core.metrics.requests import UNNAMED_VIEW, RequestCounter
from hooks.replies import Response, problem_of
from hooks.request import Request
from hooks.views import answer, resolve

PREFIX = "/hook/"

# Maps names in lower case to names and values.
Headers = dict[str, tuple[str, str]]
StartResponse = Callable[[str, list[tuple[str, str]]], object]

_BY_DEFAULT = {"Cache-Control": "no-store"}
# A script's page has the same origin as the admin; the sandbox directive gives it an opaque one.
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox",
    "Referrer-Policy": "no-referrer",
}
_STATUSES_WITHOUT_LENGTH = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


class HooksApplication:
    """Thread-safe. Sends Django's signals, with its own requests."""

    def __init__(self) -> None:
        self._counter = RequestCounter() if settings.ARE_METRICS_ON else None
        self._by_default = {
            scheme: _by_name((security_headers(scheme) | _BY_DEFAULT).items())
            for scheme in ("http", "https")
        }
        self._always = _by_name(_ALWAYS.items())

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        started = time.perf_counter()
        request_started.send(sender=HooksApplication, environ=environ)
        request = Request.of(environ)
        bind_request(request.request_id)
        view, response = self._answer(request)
        start_response(_status_line(response.status), self._headers(request, response))
        if self._counter is not None:
            seconds = time.perf_counter() - started
            self._counter.count(view, request.method, response.status, seconds)
        return _Body(response.body, request.after_reply)

    def _answer(self, request: Request) -> tuple[str, Response]:
        """The view's name for the metrics, and its response."""
        view = UNNAMED_VIEW
        try:
            require_allowed_host(request.environ)
            endpoint, address = resolve(request.path)
            view = endpoint.name
            return view, answer(request, endpoint, address)
        except DisallowedHost:
            return view, problem_of(request, Problem(ProblemCode.INVALID_REQUEST))
        except Exception as error:  # noqa: BLE001  (the signal's receiver logs it)
            if self._counter is not None:
                self._counter.count_exception(error)
            got_request_exception.send(sender=HooksApplication, request=request)
            return view, problem_of(request, Problem(ProblemCode.INTERNAL_ERROR))

    def _headers(self, request: Request, response: Response) -> list[tuple[str, str]]:
        """The response's headers, which replace those by default, and those of every response."""
        by_default = self._by_default[scheme_of(request.environ)]
        headers = [*(by_default | _by_name(response.headers) | self._always).values()]
        if response.status not in _STATUSES_WITHOUT_LENGTH:
            headers.append(("Content-Length", str(len(response.body))))
        headers.append((HEADER, request.request_id))
        return headers


class _Body(list[bytes]):
    """A body in one piece; the server closes it when it is sent."""

    def __init__(self, body: bytes, after_reply: Iterable[Callable[[], None]]) -> None:
        super().__init__([body])
        self._after_reply = after_reply

    def close(self) -> None:
        # Gives the database connection back.
        request_finished.send(sender=HooksApplication)
        for act in self._after_reply:
            act()


def _by_name(headers: Iterable[tuple[str, str]]) -> Headers:
    return {header[0].lower(): header for header in headers}


def _status_line(status: int) -> str:
    return f"{int(status)} {REASONS.get(status, 'Unknown Status Code')}"
