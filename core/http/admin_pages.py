"""The admin's pages: their paths and their Content-Security-Policy.

Scripts come only from files of this server; inline scripts and event handlers are blocked. Unfold's
Alpine.js compiles expressions in attributes, which needs ``'unsafe-eval'``. Unfold, Ace and htmx
set inline styles, which needs ``'unsafe-inline'`` for styles.
"""

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

_DIRECTIVES = {
    "default-src": "'none'",
    "script-src": "'self' 'unsafe-eval'",
    "script-src-attr": "'none'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}
ADMIN_POLICY = "; ".join(f"{name} {sources}" for name, sources in _DIRECTIVES.items())


def is_admin_page(request: HttpRequest) -> bool:
    return request.path_info.startswith("/admin/") and request.path_info != "/admin/graphql"


def set_admin_policy(response: HttpResponseBase) -> None:
    response.headers["Content-Security-Policy"] = ADMIN_POLICY


class ContentSecurityPolicy:
    """Middleware that sets the policy on every response of the admin."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self._get_response(request)
        set_admin_policy(response)
        return response
