"""A WSGI application beside Django's handler, for the frequent requests of machines.

These need no middleware, URL resolver or form, which cost more than what they ask for. The rules
that hold for every URL of the server are functions in core/, which Django's middleware uses too.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import lru_cache
from http.client import responses as REASONS  # noqa: N812
from typing import Any, NamedTuple

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.wsgi import WSGIRequest
from django.core.signals import request_finished, request_started
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port, validate_host
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware

from core.metrics.requests import RequestCounter

StartResponse = Callable[[str, list[tuple[str, str]]], object]


class Answer(NamedTuple):
    view: str
    """The view's name for the metrics."""
    status: int
    headers: list[tuple[str, str]]
    body: bytes
    after_reply: Iterable[Callable[[], None]] = ()
    """Called when the reply has been sent."""


class SlimApplication(ABC):
    """Thread-safe. Sends Django's signals."""

    def __init__(self) -> None:
        self._counter = RequestCounter() if settings.ARE_METRICS_ON else None

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        started = time.perf_counter()
        request_started.send(sender=type(self), environ=environ)
        view, status, headers, body, after_reply = self._answer(environ)
        start_response(_status_line(status), headers)
        if self._counter is not None:
            seconds = time.perf_counter() - started
            self._counter.count(view, environ["REQUEST_METHOD"].upper(), status, seconds)
        return _Body(body, type(self), after_reply)

    @abstractmethod
    def _answer(self, environ: dict[str, Any]) -> Answer:
        """Answers the request, of which it binds the id to the log; raises no ``Exception``."""


class _Body(list[bytes]):
    """A body in one piece; the server closes it when it is sent."""

    def __init__(
        self,
        body: bytes,
        sender: type[SlimApplication],
        after_reply: Iterable[Callable[[], None]],
    ) -> None:
        super().__init__([body])
        self._sender = sender
        self._after_reply = after_reply

    def close(self) -> None:
        # Gives the database connection back.
        request_finished.send(sender=self._sender)
        for act in self._after_reply:
            act()


def _status_line(status: int) -> str:
    return f"{int(status)} {REASONS.get(status, 'Unknown Status Code')}"


class BareRequest(WSGIRequest):
    """A GET request that Django has not parsed, which would take most of the time.

    Headers and cookies are parsed when they are read; there is no body.
    """

    method = "GET"
    path = path_info = "/"

    def __init__(self, environ: dict[str, Any]) -> None:
        self.META = self.environ = environ


def require_allowed_host(environ: dict[str, Any]) -> None:
    """Raise ``DisallowedHost`` if the request is for a host that is not in ``ALLOWED_HOSTS``."""
    host = BareRequest(environ)._get_raw_host()  # type: ignore[attr-defined]
    if not _is_allowed(host, tuple(settings.ALLOWED_HOSTS)):
        # Repeats the check without the cache, and raises with the reason.
        BareRequest(environ).get_host()


@lru_cache(maxsize=256)
def _is_allowed(host: str, allowed: tuple[str, ...]) -> bool:
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, allowed)


def has_allowed_host(environ: dict[str, Any]) -> bool:
    try:
        require_allowed_host(environ)
    except DisallowedHost:
        return False
    return True


def scheme_of(environ: dict[str, Any]) -> str:
    """``http`` or ``https``, as the client's proxy says if ``SECURE_PROXY_SSL_HEADER`` is set."""
    return BareRequest(environ).scheme or "http"


def security_headers(scheme: str) -> dict[str, str]:
    """The headers that Django's middleware adds to responses, which depend on the scheme alone."""
    plain = HttpResponse()
    own = set(plain.headers)

    def respond(request: HttpRequest) -> HttpResponse:
        return plain

    request = BareRequest({"wsgi.url_scheme": scheme})
    SecurityMiddleware(XFrameOptionsMiddleware(respond))(request)
    return {name: value for name, value in plain.headers.items() if name not in own}
