"""The administrators' pages have middleware of their own: sessions, users, messages, CSRF.

The doors of programs and devices know their callers by other means, and do not pay for these.
"""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponseBase
from django.utils.module_loading import import_string

from core.http.admin_pages import is_admin_page
from core.http.bulkhead import Bulkhead, BulkheadFullError
from core.http.unavailable import busy_page

# Before anybody knows whose login it is, which takes several queries: at most as many requests of
# one login as its organisation may have at work and waiting.
logins = Bulkhead(
    "admin-logins",
    limit=settings.WEB_THREADS,
    limit_per_key=settings.ADMIN_AT_ONCE_PER_ORGANISATION + settings.ADMIN_WAITING // 2,
)

Handler = Callable[[HttpRequest], HttpResponseBase]


class Desk:
    """Middleware that puts ``DESK_MIDDLEWARE`` around the pages of the admin alone."""

    def __init__(self, get_response: Handler) -> None:
        self._elsewhere = self._at_the_desk = get_response
        self._view_hooks: list[Callable[..., HttpResponseBase | None]] = []
        for name in reversed(settings.DESK_MIDDLEWARE):
            self._put_around(import_string(name)(self._at_the_desk), name)

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not is_admin_page(request):
            return self._elsewhere(request)
        login = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
        if not login:
            return self._at_the_desk(request)
        try:
            with logins.place(login, waits=False):
                return self._at_the_desk(request)
        except BulkheadFullError as error:
            return busy_page(error)

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        if is_admin_page(request):
            for hook in self._view_hooks:
                if response := hook(request, view, args, kwargs):
                    return response
        return None

    def _put_around(self, middleware: Any, name: str) -> None:
        for unknown in ("process_exception", "process_template_response"):
            if hasattr(middleware, unknown):
                raise ImproperlyConfigured(f"DESK_MIDDLEWARE: nobody calls {unknown} of {name}.")
        if hasattr(middleware, "process_view"):
            self._view_hooks.insert(0, middleware.process_view)
        self._at_the_desk = convert_exception_to_response(middleware)  # type: ignore[assignment]
