"""Authentication by a session's token, sent as a bearer token or in the cookie."""

from functools import partial
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from accounts.audit import person, program
from accounts.credentials import API_KEY_ID_PREFIX, SecretKind
from accounts.models import User
from core.http.origin import Actor, act_as, client_address, is_cross_origin
from core.http.problems import Problem, ProblemCode
from core.logs.context import bind
from sessions_api.flows import use_session
from sessions_api.models import Session

REALM = 'Bearer realm="moonhook"'
_SCHEME = "bearer"
_SCHEME_MISSING = "The scheme Bearer is missing. Send Authorization: Bearer mhx_…"
_OTHER_CREDENTIALS = {
    SecretKind.API_KEY: "This is an API secret. Open a session first: POST /session.",
    API_KEY_ID_PREFIX: "This is an API key's id. Open a session first: POST /session.",
    SecretKind.DEVICE_TOKEN: "This is a device token. Open a session first: POST /session.",
    SecretKind.CALL_TOKEN: "This is a hook's call token, which opens no session.",
}


def authenticate_session(request: HttpRequest) -> Session:
    """The request's live session. Raises ``Problem`` if there is none.

    Challenges follow RFC 6750: no error code without a token, ``invalid_token`` for a refused one.
    """
    presented = presented_token(request)
    if presented is None:
        raise Problem(ProblemCode.NOT_AUTHENTICATED, headers={"WWW-Authenticate": REALM})
    session = use_session(presented.token, client_address(request))
    if session is None:
        raise Problem(
            ProblemCode.SESSION_INVALID,
            _told_by_form(presented),
            headers={"WWW-Authenticate": f'{REALM}, error="invalid_token"'},
        )
    bind(session=session.pk)
    act_as(request, partial(actor_of, session))
    if session.api_key is not None:
        bind(organisation=session.api_key.organisation_id)
    return session


def actor_of(session: Session) -> Actor | None:
    if session.api_key is not None:
        return program(session.api_key)
    return None if session.user is None else person(session.user)


def refuse_cross_origin_cookie(request: HttpRequest) -> None:
    """Raises ``Problem`` for an unsafe cross-origin request that carries the session cookie."""
    if cookie_name() in request.COOKIES and is_cross_origin(request):
        raise Problem(ProblemCode.CROSS_ORIGIN)


class SessionAuthentication(BaseAuthentication):
    """Sets ``request.auth`` to the session and ``request.user`` to its user or ``None``."""

    def authenticate(self, request: Request) -> tuple[User | None, Session]:
        refuse_cross_origin_cookie(request._request)
        session = authenticate_session(request._request)
        return session.user, session

    def authenticate_header(self, request: Any) -> str:
        return REALM


class PresentedToken(NamedTuple):
    """``without_scheme`` is the first word of a header whose scheme is not Bearer."""

    token: str
    by_cookie: bool
    without_scheme: str = ""


def cookie_name() -> str:
    """``__Host-`` binds the cookie to this host, but requires https (RFC 6265bis, 4.1.3)."""
    return "__Host-moonhook_session" if settings.IS_PUBLIC_URL_HTTPS else "moonhook_session"


def presented_token(request: HttpRequest) -> PresentedToken | None:
    """The token from the ``Authorization`` header, or from the cookie if there is no header."""
    authorization = request.META.get("HTTP_AUTHORIZATION")
    if authorization is not None:
        scheme, _, token = authorization.strip().partition(" ")
        if scheme.lower() == _SCHEME:
            return PresentedToken(token.strip(), by_cookie=False)
        return PresentedToken("", by_cookie=False, without_scheme=scheme)
    if cookie := request.COOKIES.get(cookie_name()):
        return PresentedToken(cookie, by_cookie=True)
    return None


def _told_by_form(presented: PresentedToken) -> str:
    """What the form of a refused token tells, the same for real and invented ones; or nothing."""
    text = presented.token or presented.without_scheme
    for prefix, detail in _OTHER_CREDENTIALS.items():
        if text.startswith(prefix):
            return detail
    return "" if presented.by_cookie or presented.token else _SCHEME_MISSING


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
