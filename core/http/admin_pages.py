"""The admin's pages: their paths and their Content-Security-Policy.

Scripts come only from static files and Django's catalogue of words; inline scripts and event
handlers are blocked. Sources are named with their paths: ``'self'`` would include addresses
whose replies tenants write. Unfold's Alpine.js compiles expressions in attributes, which needs
``'unsafe-eval'``. Unfold, Ace and htmx set inline styles, which needs ``'unsafe-inline'`` for
styles.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest
from django.http.response import HttpResponseBase

_PAGES = "/admin/"
# Of programs, which have no login of the admin.
_ENDPOINT = re.compile(r"/admin/(?:graphql|schema\.graphql|blobs)(?:/.*)?", re.DOTALL)
_WORDS = "/admin/jsi18n/"

# A source of a policy has no notation for an IPv6 address.
_NAMEABLE_HOST = re.compile(r"[a-z0-9.-]+(:[0-9]+)?", re.IGNORECASE)


def is_admin_page(request: HttpRequest) -> bool:
    return request.path_info.startswith(_PAGES) and not _ENDPOINT.fullmatch(request.path_info)


def set_admin_policy(request: HttpRequest, response: HttpResponseBase) -> None:
    response.headers["Content-Security-Policy"] = admin_policy(_host_of(request))


def admin_policy(host: str | None) -> str:
    """Return the policy of pages that are served for the host; ``None``: for a refused one."""
    return _policy(_named_hosts(host, urlsplit(settings.PUBLIC_URL).netloc))


def _host_of(request: HttpRequest) -> str | None:
    try:
        return request.get_host()
    except DisallowedHost:
        return None


def _named_hosts(host: str | None, public_host: str) -> tuple[str, ...]:
    """Return the host and that of ``PUBLIC_URL``: a proxy may pass the host without its port.

    Return none if a policy cannot name the host. A refused host needs no name, since it serves
    nothing.
    """
    if host is None or not _NAMEABLE_HOST.fullmatch(host):
        return ()
    is_other = host != public_host and _NAMEABLE_HOST.fullmatch(public_host)
    return (host, public_host) if is_other else (host,)


@lru_cache(maxsize=256)
def _policy(hosts: tuple[str, ...]) -> str:
    """Return the policy with sources without a scheme, which have that of the page.

    A proxy that ends TLS need not say so.
    """

    def at(*paths: str) -> str:
        return " ".join(host + path for path in paths for host in hosts) or "'self'"

    files = at(settings.STATIC_URL)
    directives = {
        "default-src": "'none'",
        "script-src": f"{at(settings.STATIC_URL, _WORDS)} 'unsafe-eval'",
        "script-src-attr": "'none'",
        "worker-src": "'none'",
        "style-src": f"{files} 'unsafe-inline'",
        "img-src": f"{files} data:",
        "font-src": files,
        "connect-src": at(_PAGES),
        "object-src": "'none'",
        "base-uri": "'none'",
        "form-action": at(_PAGES),
        "frame-ancestors": "'none'",
    }
    return "; ".join(f"{name} {sources}" for name, sources in directives.items())


class ContentSecurityPolicy:
    """Middleware that sets the policy on every response of the admin."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self._get_response(request)
        set_admin_policy(request, response)
        return response
