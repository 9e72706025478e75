"""Django's rules about hosts and security headers, for a WSGI application beside its handler."""

from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port, validate_host
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware


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
