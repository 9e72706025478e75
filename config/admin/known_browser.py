"""Known browsers: those in which a user has logged in to the admin before, by a signed cookie.

The cookie gives no access; it selects the rate limit that counts wrong passwords. It belongs to one
user, and is valid until their password changes or all their logins are ended.
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
    """A browser in which ``user`` has logged in before. It does not authenticate the user."""

    id: str
    user: User


def remember_browser(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """Set the cookie, after both factors. A known browser keeps its id."""
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
    """Return the browser if the user with this canonical address has logged in there before."""
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
    """Name the user's cookie without showing their address."""
    digest = salted_hmac(_SALT, email, algorithm="sha256").hexdigest()
    return f"moonhook_admin_browser_{digest[:16]}"


def _signer(user: User) -> TimestampSigner:
    bound_to = (user.pk, user.get_session_auth_hash(), user.sessions_valid_after)
    return TimestampSigner(salt=":".join([_SALT, *map(str, bound_to)]))
