"""How a request presents its session: a bearer token or the cookie."""

from typing import NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse

_SCHEME = "bearer"


class PresentedToken(NamedTuple):
    token: str
    by_cookie: bool


def cookie_name() -> str:
    """``__Host-`` binds the cookie to this host, and works over https only (RFC 6265bis, 4.1.3)."""
    return "__Host-moonhook_session" if settings.IS_PUBLIC_URL_HTTPS else "moonhook_session"


def presented_token(request: HttpRequest) -> PresentedToken | None:
    """The token of the ``Authorization`` header or else of the cookie; the header wins."""
    authorization = request.META.get("HTTP_AUTHORIZATION")
    if authorization is not None:
        scheme, _, token = authorization.strip().partition(" ")
        return PresentedToken(token.strip() if scheme.lower() == _SCHEME else "", False)
    if cookie := request.COOKIES.get(cookie_name()):
        return PresentedToken(cookie, True)
    return None


def set_cookie(response: HttpResponse, token: str, max_age_seconds: int) -> None:
    response.set_cookie(
        cookie_name(),
        token,
        max_age=max_age_seconds,
        path="/",
        secure=settings.IS_PUBLIC_URL_HTTPS,
        httponly=True,
        samesite="Lax",
    )


def clear_cookie(response: HttpResponse) -> None:
    set_cookie(response, "", max_age_seconds=0)
