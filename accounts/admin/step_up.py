"""Step-up: a fresh proof of who is at the keyboard, before secrets, roles, keys or second factors.

The proof is the second factor, or the password of a user without one. A page that needs it sends
the browser to the page ``admin:step_up`` before its form, so nothing typed is kept; a form that
arrives without a fresh proof changes nothing.
"""

import time
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth import REDIRECT_FIELD_NAME
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

FRESH_FOR = timedelta(minutes=15)
_PROVED = "proved_at"

Arguments = ParamSpec("Arguments")


def note_proof(request: HttpRequest) -> None:
    """Starts the time of a proof that the request has just given."""
    request.session[_PROVED] = int(time.time())


def forget_proof(request: HttpRequest) -> None:
    request.session.pop(_PROVED, None)


def is_proved(request: HttpRequest) -> bool:
    """Whether the session's last proof is fresh. One from the future, by the clock, is not."""
    proved_at = request.session.get(_PROVED)
    if not isinstance(proved_at, int):
        return False
    return 0 <= int(time.time()) - proved_at <= FRESH_FOR.total_seconds()


def ask_for_proof(request: HttpRequest) -> HttpResponse:
    """Redirects to the page that asks for the proof, which then opens this page again."""
    query = urlencode({REDIRECT_FIELD_NAME: request.get_full_path()})
    return redirect(f"{reverse('admin:step_up')}?{query}")


def proved(
    view: Callable[Concatenate[HttpRequest, Arguments], HttpResponse],
) -> Callable[Concatenate[HttpRequest, Arguments], HttpResponse]:
    """Decorator for a view of logged-in users that needs a fresh proof, whatever the method."""

    @wraps(view)
    def ask_first(
        request: HttpRequest, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> HttpResponse:
        return view(request, *args, **kwargs) if is_proved(request) else ask_for_proof(request)

    return ask_first
