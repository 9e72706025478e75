"""Browsers in which somebody has logged in to the admin before, known by a cookie.

The cookie proves that, and opens nothing: it says which window counts wrong passwords. It is one
user's, and good until their password changes or all of their logins are ended.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import NamedTuple

from django.conf import settings
from django.core.signing import BadSignature, TimestampSigner
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import salted_hmac

from accounts.models import User

LIFETIME = timedelta(days=180)
_SALT = "moonhook.admin.known-browser"


class KnownBrowser(NamedTuple):
    """``user`` has logged in with it before; nobody has shown a password yet."""

    id: str
    user: User


def remember_browser(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """After both factors. A browser that was known keeps its id."""
    known = known_browser(request, user.email)
    browser = secrets.token_hex(8) if known is None else known.id
    response.set_cookie(
        cookie_name(user.email),
        _signer(user).sign(browser),
        max_age=LIFETIME,
        path=settings.SESSION_COOKIE_PATH,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Strict",
    )


def known_browser(request: HttpRequest, email: str) -> KnownBrowser | None:
    """The browser, if the user of the canonical address has logged in with it before."""
    cookie = request.COOKIES.get(cookie_name(email))
    if cookie is None:
        return None
    user = User.objects.filter(email=email, is_active=True, is_staff=True).first()
    if user is None:
        return None
    try:
        return KnownBrowser(_signer(user).unsign(cookie, max_age=LIFETIME), user)
    except BadSignature:
        return None


def cookie_name(email: str) -> str:
    """One for each user; it does not show the address."""
    digest = salted_hmac(_SALT, email, algorithm="sha256").hexdigest()
    return f"moonhook_admin_browser_{digest[:16]}"


def _signer(user: User) -> TimestampSigner:
    bound_to = (user.pk, user.get_session_auth_hash(), user.sessions_valid_after)
    return TimestampSigner(salt=":".join([_SALT, *map(str, bound_to)]))
