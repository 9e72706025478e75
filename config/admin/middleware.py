"""The administrators' pages have middleware of their own: sessions, users, messages, CSRF.

The doors of programs and devices know their callers by other means, and do not pay for these.
"""

import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import SESSION_KEY, logout
from django.contrib.sessions.backends.base import SessionBase
from django.core.exceptions import ImproperlyConfigured
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.module_loading import import_string

from accounts.models import User
from core.http.admin_pages import is_admin_page
from core.http.bulkhead import Bulkhead, BulkheadFullError
from core.http.unavailable import busy_page

Handler = Callable[[HttpRequest], HttpResponseBase]


class Desk:
    """Middleware that puts ``DESK_MIDDLEWARE`` around the pages of the admin alone."""

    def __init__(self, get_response: Handler) -> None:
        self._elsewhere = self._at_the_desk = get_response
        self._view_hooks: list[Callable[..., HttpResponseBase | None]] = []
        for name in reversed(settings.DESK_MIDDLEWARE):
            self._put_around(import_string(name)(self._at_the_desk), name)

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        answer = self._at_the_desk if is_admin_page(request) else self._elsewhere
        return answer(request)

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


_logins = Bulkhead(
    "admin-logins",
    limit=settings.WEB_THREADS,
    limit_per_key=settings.ADMIN_AT_ONCE_PER_ORGANISATION + settings.ADMIN_WAITING // 2,
)


class LoginBulkhead:
    """Bounds the requests of one login at once, before its session and user are looked up.

    As many as its organisation may have at work and waiting: the bulkhead of pages would refuse
    the others too, after several queries.
    """

    def __init__(self, get_response: Handler) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        login = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
        if not login:
            return self._get_response(request)
        try:
            with _logins.place(login, waits=False):
                return self._get_response(request)
        except BulkheadFullError as error:
            return busy_page(error)


_BEGAN, _USED = "login_began", "login_used"
_WRITTEN_EVERY_SECONDS = 60


def restart(session: SessionBase) -> None:
    """A new login: both clocks begin anew."""
    now = time.time()
    session[_BEGAN], session[_USED] = now, int(now)


class AdminSessionLimits:
    """Stands behind the middleware for sessions, users and messages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if SESSION_KEY in request.session:
            self._check(request)
        return self.get_response(request)

    def _check(self, request: HttpRequest) -> None:
        now, session = int(time.time()), request.session
        began, used = session.get(_BEGAN), session.get(_USED)
        if began is None or used is None:
            restart(session)
        elif not _is_of_an_active_user(request, began):
            _end(request, "You were logged out: this login has ended.")
        elif now - used > settings.ADMIN_SESSION_IDLE.total_seconds():
            _end(request, "You were logged out, because nothing was asked for in a while.")
        elif now - began > settings.ADMIN_SESSION_ABSOLUTE.total_seconds():
            _end(request, "You were logged out: a login lasts for some hours only.")
        elif used > now + _WRITTEN_EVERY_SECONDS:
            # The clock was set back: the limits count from now, or they would end with its jump.
            session[_BEGAN], session[_USED] = min(began, now), now
        elif now - used >= _WRITTEN_EVERY_SECONDS:
            session[_USED] = now


def _is_of_an_active_user(request: HttpRequest, began: float) -> bool:
    """Whether the user is active, and has been since the login began."""
    user = request.user
    if not isinstance(user, User) or not user.is_active:
        return False
    ended_at = user.sessions_valid_after
    return ended_at is None or began > ended_at.timestamp()


def _end(request: HttpRequest, why: str) -> None:
    logout(request)
    messages.info(request, why)
