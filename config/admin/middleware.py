"""Middleware of the admin: sessions, users, messages, CSRF, and limits on an admin session.

The other endpoints authenticate their callers by other means and do not pay for it.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import SESSION_KEY, logout
from django.contrib.sessions.backends.base import SessionBase
from django.core.exceptions import ImproperlyConfigured
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.module_loading import import_string

from accounts.audit import person
from accounts.models import User
from core.http.admin_pages import is_admin_page
from core.http.bulkhead import Bulkhead, BulkheadFullError
from core.http.origin import Actor, act_as
from core.http.problem_handlers import Handler, answering_outages, busy_page

_UNSUPPORTED_HOOKS = ("process_exception", "process_template_response")
_STARTED, _USED = "login_began", "login_used"
_WRITE_INTERVAL_SECONDS = 60

_logins = Bulkhead(
    "admin-logins",
    limit=settings.WEB_THREADS,
    limit_per_key=settings.ADMIN_AT_ONCE_PER_ORGANISATION + settings.ADMIN_WAITING // 2,
)


class AdminMiddleware:
    """Applies the middleware in ``ADMIN_MIDDLEWARE`` to admin pages only."""

    def __init__(self, get_response: Handler) -> None:
        self._other_pages = self._admin_pages = get_response
        self._view_hooks: list[Callable[..., HttpResponseBase | None]] = []
        for name in reversed(settings.ADMIN_MIDDLEWARE):
            self._wrap_in(import_string(name)(self._admin_pages), name)

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        handler = self._admin_pages if is_admin_page(request) else self._other_pages
        return handler(request)

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        if is_admin_page(request):
            for hook in self._view_hooks:
                if response := hook(request, view, args, kwargs):
                    return response
        return None

    def _wrap_in(self, middleware: Any, name: str) -> None:
        for hook in _UNSUPPORTED_HOOKS:
            if hasattr(middleware, hook):
                raise ImproperlyConfigured(f"ADMIN_MIDDLEWARE: {name}.{hook} would not be called.")
        if hasattr(middleware, "process_view"):
            self._view_hooks.insert(0, middleware.process_view)
        self._admin_pages = convert_exception_to_response(  # type: ignore[assignment]
            answering_outages(middleware)
        )


class LoginBulkhead:
    """Limits the concurrent requests of one login before its session and user are looked up.

    The limit is what its organisation may have running and waiting; the bulkhead of pages would
    refuse the rest too, but only after several queries.
    """

    def __init__(self, get_response: Handler) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        login = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
        if not login.isalnum():
            # Nobody's: looking it up would raise on PostgreSQL if it contains NUL.
            request.COOKIES.pop(settings.SESSION_COOKIE_NAME, None)
            return self._get_response(request)
        try:
            with _logins.place(login, waits=False):
                return self._get_response(request)
        except BulkheadFullError as error:
            return busy_page(error)


class AdminActor:
    """Names the logged-in user as the actor in events. Follows the middleware for users."""

    def __init__(self, get_response: Handler) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        act_as(request, partial(_actor_of, request))
        return self._get_response(request)


def _actor_of(request: HttpRequest) -> Actor | None:
    """Read when an event is recorded: a login changes the user of its request."""
    return person(request.user) if isinstance(request.user, User) else None


class AdminSessionLimits:
    """Ends admin sessions at their idle and absolute limits, or when the user's logins are ended.

    Follows the middleware for sessions, users and messages.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if SESSION_KEY in request.session:
            self._check(request)
        return self.get_response(request)

    def _check(self, request: HttpRequest) -> None:
        now, session = int(time.time()), request.session
        started, used = session.get(_STARTED), session.get(_USED)
        if started is None or used is None:
            start_limits(session)
        elif not _is_valid_for_user(request, started):
            _end(request, "You were logged out: this login was ended.")
        elif now - used > settings.ADMIN_SESSION_IDLE.total_seconds():
            _end(request, "You were logged out because of inactivity.")
        elif now - started > settings.ADMIN_SESSION_ABSOLUTE.total_seconds():
            _end(request, "You were logged out: a login lasts only a few hours.")
        elif used > now + _WRITE_INTERVAL_SECONDS:
            # The clock was set back. Count from now, or the session would outlast its limits.
            session[_STARTED], session[_USED] = min(started, now), now
        elif now - used >= _WRITE_INTERVAL_SECONDS:
            session[_USED] = now


def start_limits(session: SessionBase) -> None:
    """Start the idle and absolute limits of a new login."""
    now = time.time()
    session[_STARTED], session[_USED] = now, int(now)


def _is_valid_for_user(request: HttpRequest, started: float) -> bool:
    """Whether the user is active and has not ended their logins since this one started."""
    user = request.user
    if not isinstance(user, User) or not user.is_active:
        return False
    ended_at = user.sessions_valid_after
    return ended_at is None or started > ended_at.timestamp()


def _end(request: HttpRequest, reason: str) -> None:
    logout(request)
    messages.info(request, reason)
