"""The WSGI application of every path under /hook/, which does not pass through Django's handler."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from django.core.exceptions import DisallowedHost
from django.core.signals import got_request_exception

from core.http.django_rules import require_allowed_host, scheme_of, security_headers
from core.http.problems import Problem, ProblemCode
from core.http.request_id import HEADER
from core.http.slim_application import Answer, SlimApplication
from core.logs.context import bind_request
from core.metrics.requests import UNNAMED_VIEW
from hooks.replies import Response, problem_of
from hooks.request import Request
from hooks.views import answer, resolve

PREFIX = "/hook/"

# Maps names in lower case to names and values.
Headers = dict[str, tuple[str, str]]

_BY_DEFAULT = {"Cache-Control": "no-store"}
# A script's page has the same origin as the admin; the sandbox directive gives it an opaque one.
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox",
    "Referrer-Policy": "no-referrer",
}
_STATUSES_WITHOUT_LENGTH = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


class HooksApplication(SlimApplication):
    def __init__(self) -> None:
        super().__init__()
        self._by_default = {
            scheme: _by_name((security_headers(scheme) | _BY_DEFAULT).items())
            for scheme in ("http", "https")
        }
        self._always = _by_name(_ALWAYS.items())

    def _answer(self, environ: dict[str, Any]) -> Answer:
        request = Request.of(environ)
        bind_request(request.request_id)
        view, response = self._response(request)
        headers = self._headers(request, response)
        return Answer(view, response.status, headers, response.body, request.after_reply)

    def _response(self, request: Request) -> tuple[str, Response]:
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


def _by_name(headers: Iterable[tuple[str, str]]) -> Headers:
    return {header[0].lower(): header for header in headers}
