"""A login to the admin ends when it is not used, some hours after it began, and for good when its
user is deactivated.
"""

import time
from collections.abc import Callable

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import SESSION_KEY, logout
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest, HttpResponse

from accounts.models import User

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
